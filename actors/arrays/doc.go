// Package arrays is the node's side of volumes of remote arrays: [Node] stages a volume, gives it to
// pods, takes it back and unstages it.
//
// What changes has an actor: a volume, the session to an iSCSI target, and a report to the API server; a
// volume whose room is measured has a second one. One more looks now and then for volumes that the kubelet has
// forgotten in the middle of a stage. A volume that is staged and rests has none: all that is
// known of it is its record, the mount table and sysfs. So a new daemon, and one that was killed at any point, takes over
// what an earlier one has staged without asking the API server or an array.
//
// Each call that may wait for an array runs in a goroutine of its own (a task), at most one for each volume. The
// caller gets [volume.ErrUnavailable] after [Config].Patience, which says what the task waits for; the task goes
// on, and the same call shares its outcome.
//
// Nothing that is mounted for a pod is unmounted, and its device and session are left alone: the mount table has
// the last word. A device is identified before anything is written to it or mounted.
package arrays
