// Package registration registers the driver with the kubelet, as the sidecar
// node-driver-registrar does: plugin registration v1.
//
// The kubelet watches a directory for sockets. It asks each new one who it is
// (GetInfo), looks at the CSI driver behind it, and says how that went
// (NotifyRegistrationStatus). It does so again after a restart of its own. After
// a refusal it does not come back before the socket is made anew; and when the
// socket goes, the driver is unregistered.
//
// So the socket is there as long as the driver serves. One that somebody has
// removed comes back, with its directory, and after a refusal it is made anew
// after a while. The file is looked at now and then and not watched: a watch
// goes with the directory, and a look costs nothing.
//
// The kubelet's protocol comes from k8s.io/kubelet; of that module nothing else
// is linked in.
package registration
