// Package podevents tells people where the files of a failed pod are: it writes a Kubernetes event,
// with the commands that show them, on the pod. When the pod is being deleted it goes on the pod's
// Job, and there is none if it has no Job: users do not look at what they have deleted.
//
// The event says that files are kept, and not until when: that is decided by the node as the kubelet
// lets go of the volume, after the pod has failed, and room may run short later. One of the commands
// shows it.
//
// An event is named after the pod's UID, so that the first of all replicas writes it, and a restart
// repeats none. Only pods that have ended within the last ten minutes get one, so that a gateway that
// starts writes none about what the cluster has kept of last week.
//
// Events are a convenience: nothing waits for one. They come from a short queue, as many as two token
// buckets allow, that of the namespace and that of the gateway. What is beyond them is dropped and
// counted, and so is what the API server refuses. Nothing is tried again.
package podevents
