// Package kubelet knows the kubelet: what its directories look like, what it puts into a volume's
// context, and how it registers a driver.
//
// A [Registrar] registers the driver as the sidecar node-driver-registrar does, by plugin
// registration v1. The kubelet watches a directory for sockets. It asks each new one who it is
// (GetInfo), looks at the CSI driver behind it, and reports the outcome (NotifyRegistrationStatus).
// It does the same after its own restart. After a refusal it returns only when the socket is made
// anew. When the socket goes, it unregisters the driver.
//
// So the socket exists as long as the driver serves. The Registrar looks at the file now and then
// instead of watching it: a watch goes with the directory, and a look costs nothing.
package kubelet
