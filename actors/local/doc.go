// Package local is the node's side of volumes on its own disks: [Node] makes, grows, copies and deletes volumes in the
// node's pools for the controller ([local.Pools]), and gives them to pods for the kubelet.
//
// A volume or a snapshot that changes has an actor; one that rests is its record on the pool's disk, and the mount
// table says whether it is in use. One more actor, the keeper, knows of each pool whether its disk is there, and what
// room is promised: two volumes that are made at the same time never get the same room.
//
// The record says what is to be, before anything is made or deleted. So a new daemon, and one that was killed at any
// point, finishes what an earlier one has begun. Only what the mount table shows to be mounted nowhere is deleted.
//
// A volume that is kept without a claim is described by its record's comment, and may be read. The keeper lends it: who
// reads it is told when a claim gets it back, when it is deleted, or when its disk goes, and none of these waits.
//
// A pool whose disk is away answers [volume.ErrUnavailable], and the others go on. It is looked for until it is back.
// Volumes of it are taken away from pods all the same: that needs the mount table alone.
package local
