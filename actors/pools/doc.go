// Package pools is the controller's side of persistent volumes: one actor for each pool, and one for each volume, snapshot and
// attachment that is changing.
//
// [Controller] is its front. Behind it is the owner, in the supervisor's turn: watches and tasks tell it what there is, it decides on
// each request, and tells the actors. Each of these is a package that knows the others by their messages alone:
//
//   - index: what is known of all resources, and what may be done by that (admission);
//   - nodes: which node has which disk;
//   - tasks: the work on one volume, snapshot, attachment or node; its actor runs one task at a time;
//   - pool: the actor of a Pool, which asks the array how it is, configures it, compares it with the resources (comparison), and
//     writes the Pool's status;
//   - classes: chooses the pool for each new volume and keeps room there, and lets retained volumes go;
//   - unclaimed: looks once a day for volumes that neither a claim nor a PersistentVolume has.
//
// Below them are env, which all of them work with, servers, and rules: what the resources mean.
//
// A pool on a disk of a node is an array like others, whose client asks the node's daemon: the owner knows which disks the nodes have
// that are connected, and lets their Pools be made.
//
// A custom resource is the durable record. A CSI call makes the resource say what is wanted, the actor makes that true on the array,
// and the answer comes from the resource's status. So the controller may end at any instant: the next one reads the resources, looks
// at the array, and goes on.
package pools
