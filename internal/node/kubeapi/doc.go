// Package kubeapi makes the few requests that a node's daemon makes to the Kubernetes API server where
// pools are installed: it writes the node's PoolNode, reads the login of an iSCSI target, and writes into a
// PoolAttachment whether the node has a session.
//
// It uses net/http and the credentials of the pod, which it reads anew for each request, because the
// kubelet replaces them. It does not link client-go, which would double the daemon, and watches nothing: a
// [Client] holds no state of the cluster, and an API server that is away costs only the request under way.
//
// Requests run in the caller's goroutine, each for 10 seconds at most. No actor calls them in its
// Receive. Errors are those of internal/model/volume: [volume.ErrNotFound] where the object is not there,
// [volume.ErrInvalid] for a name that no object can have, and [volume.ErrUnavailable] for everything that
// may be better later. They say what was asked for, and what to do.
package kubeapi
