// Package local has the words for pools of persistent volumes on a node's own disks, and what the controller asks
// of a node about them: [Pools]. internal/node/localdisk keeps the volumes on a disk, actors/local decides on the node,
// internal/link/wire carries the questions from the controller to the node.
//
// A pool is a directory. A file in it has the pool's UUID, by which it is known wherever the disk is:
//
//	<pool>/pool.json           the UUID, the key that proves who has the disk, and what keeps the volumes
//	<pool>/volumes/<name>/     a volume: its directory, subvolume or image
//	<pool>/snapshots/<name>/   a snapshot
//	<pool>/records/<name>      what is durably known of a volume or a snapshot
//	<pool>/records/.spare      a file for the next record when the disk is full, so that volumes can be deleted
//	<pool>/.trash/             what is being erased
//	<pool>/.reserve            room that is given up for the same
package local
