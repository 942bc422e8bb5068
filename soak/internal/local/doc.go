// Package local plays what uses a node's pools of local volumes: the controller that makes them, the kubelet that
// stages and publishes them, and pods that write to them and sync what they have written.
//
// [Controller] is the controller's end of the daemon's connection, in the words of the wire. [Player] lets volumes
// live: they are made, used by one pod after the other, copied, enlarged, retained, restored and deleted. Before each
// call, and after each answer, it tells a [story.Event], and so it does of each look at what a pod has synced. The
// volume's story judges these, whether or not the daemon or the whole machine ended in between. [Player.Audit] tells the
// stories what the pools have at the end. What concerns no single volume is its own: how much room a pool has promised,
// how much a pod can write, whether a retained volume can be staged, and what is left when all are deleted.
//
// A call whose answer was lost is repeated, as the controller and the kubelet do.
package local
