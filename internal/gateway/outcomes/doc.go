// Package outcomes tells nodes how their pods have ended.
//
// One list and one watch for the whole cluster show each pod that ends, with the field selector
// status.phase!=Running,status.phase!=Pending: one event for most pods. Each replica of the gateway
// watches for itself, and each tells the nodes; a node takes the first word about a pod, so the others
// are harmless. Of an object no more is kept than the pod's UID, its outcome and the names of its
// inline CSI volumes, and for a node that keeps it, how the pod ended (package podend). Pods without such
// volumes are dropped at once, a page of a list at a time.
//
// What was seen is remembered for ten minutes: at most 2,000 pods of a node, and 100,000 in all. A
// node gets a report when one of its pods ends, and all that are remembered of its pods when it connects,
// because a daemon that was started anew may have lost what it had heard. What is forgotten stays
// unknown to the node, which then keeps the volume for its full lifespan.
package outcomes
