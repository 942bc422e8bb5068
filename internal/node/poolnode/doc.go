// Package poolnode keeps a node's PoolNode right: the resource from which the controller of the pools makes
// the node's server records on the arrays.
//
// It chooses the node's address on the storage network ([Choose]), has the initiator's name made, and
// compares both with the PoolNode every minute and whenever the address changes: one that a person
// deletes or edits is right again soon. It never deletes a PoolNode. That is the controller's, once the
// node has left the cluster.
//
// An API server that is away delays this and nothing else: see [Keeper].
package poolnode
