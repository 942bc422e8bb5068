// Package local plays what uses a node's pools of local volumes: the controller that makes them, the kubelet that
// stages and publishes them, and pods that write to them and sync what they have written.
//
// [Controller] is the controller's end of the daemon's connection, in the words of the wire. [Player] lets volumes
// live: they are made, used by one pod after the other, copied, enlarged, retained, restored and deleted. Before each
// call, and after each answer, it tells an [Event]. A [Book] knows from these what has to be true, whether or not the
// daemon or the whole machine ended in between, and [Player.Audit] compares that with what is there.
//
// A call whose answer was lost is repeated, as the controller and the kubelet do.
package local
