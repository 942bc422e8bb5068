// Package pools has the words for persistent volumes that are made in pools, and the rules that need
// no I/O: which pool takes a volume, how names are made. It knows neither CSI nor Kubernetes; the
// custom resources are in internal/model/v1alpha1.
package pools
