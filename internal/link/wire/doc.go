// Package wire carries the questions of [local.Pools] from the controller to a node: [Client] asks, [Handler]
// answers. It is HTTP with JSON, over a connection that the node has opened to the controller; internal/node/uplink and
// internal/link/hub make that.
//
//	GET    /v1/summary                               Summary after Summary: the node's pools, as they change
//	GET    /v1/pools                                 the node's pools
//	GET    /v1/pools/UUID/volumes?after=NAME&limit=N a page of volumes, by their names
//	POST   /v1/pools/UUID/volumes                    makes one
//	GET    /v1/pools/UUID/volumes/NAME               one
//	PUT    /v1/pools/UUID/volumes/NAME/size          makes it at least as large
//	PUT    /v1/pools/UUID/volumes/NAME/comment       changes its comment
//	DELETE /v1/pools/UUID/volumes/NAME               deletes it
//
// and the same below /v1/pools/UUID/snapshots, except size and comment. An error is a [Failure].
//
// # Trust
//
// A pool's key is the only secret: nothing but [local.Pool] has it, and the link between node and controller is TLS.
//
// The node believes the controller about what is wanted, and checks each name, UUID, size and length before it
// reaches a path. The controller believes a node about what is on its disks, and about nothing else: what the
// node sends is bounded before it is in memory, and what it says of another pool or another volume than it was
// asked for is refused.
//
// # What is not known
//
// A change whose answer was lost, or cannot be read, is [volume.ErrUncertain]: it may have been made, or be made
// later. One that was never sent is [volume.ErrUnavailable]. Nothing is sent twice here.
package wire
