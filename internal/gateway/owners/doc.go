// Package owners finds the owners of volumes. Nodes ask about pods; the answer comes from the API
// server, by one GET of the pod, and from the UID of its namespace.
//
// The API server's word is remembered by the pod's UID, in a bounded cache, so that several volumes
// of a pod cost one GET, and so that a node that later claims something else can be contradicted
// ([Owners.Verdict]). Nothing is remembered about a pod because of what a node said of it: the cache
// holds what the API server answered, and refusals only for the very same question.
//
// A pod that has ended when its question has its turn costs no GET, and is known also if it is gone: the watch of pods that end
// has shown it ([Owners.Ended]). Its namespace has to be older than it. A node is contradicted by the watch only where the
// API server does not have the pod any more.
//
// A pod's texts are those of the user who created it. They are bounded before anything is remembered, and the
// cache is bounded by its bytes as well.
//
// No more than 200 pods are read a second. Where more are asked about, they wait, and those that end meanwhile are not read.
// While the API server cannot be asked there is no answer, and the node asks again; an answer is final, because the node keeps it
// with the volume.
package owners
