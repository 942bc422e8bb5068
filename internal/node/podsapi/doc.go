// Package podsapi watches the kubelet's pods through its PodsAPI: a gRPC service on a Unix socket,
// on by default from Kubernetes 1.37 on. What it says comes before the kubelet unpublishes the
// volumes of a pod that has ended, costs the API server nothing, and takes no permission.
//
// The service is v1alpha1.Pods (k8s.io/kubelet/pkg/apis/pods). WatchPods sends each pod as an ADDED
// event, then INITIAL_SYNC_COMPLETE, then an event for each change. A pod is the bytes of a v1.Pod. A
// client that is 100 events behind is cut off with ResourceExhausted; then all is listed anew.
// DELETED says only which pod it was, so it tells no outcome.
//
// A [Client] may be started before there is a socket. Whatever the kubelet does - it restarts, hangs,
// sends garbage or without end - the client's memory is bounded, and it tries again with a growing
// wait. What it misses meanwhile is in the next list, if the pod is still there.
package podsapi
