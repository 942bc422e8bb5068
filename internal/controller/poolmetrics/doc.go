// Package poolmetrics is what the controller of the pools reports to Prometheus. [Metrics] has a method for
// every event, in the controller's words. A call is a few atomic additions; it neither waits nor fails.
//
// Labels have names of pools, of which there are few and which an administrator chooses, but never those
// of volumes, claims, namespaces or nodes.
package poolmetrics
