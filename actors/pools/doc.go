// Package pools is the controller's side of persistent volumes: one actor for each pool, and one for
// each volume, snapshot and attachment that is changing.
//
// [Controller] is its front. Behind it are
//
//   - the owner, in the supervisor's turn: the index of all resources, fed by watches and tasks, and
//     the decisions on what concerns several resources (admission);
//   - one pool actor for each Pool: it asks the array how it is (probe), configures it, compares it
//     with the resources (comparison), and writes the Pool's status;
//   - classes, which chooses the pool for each new volume and keeps room there;
//   - unclaimed, which looks once a day for volumes that neither a claim nor a PersistentVolume has;
//   - one subject for each volume, snapshot and attachment that is changing. It runs one task at a
//     time.
//
// A pool on a disk of a node is an array like others, whose client asks the node's daemon: the owner knows which
// disks the nodes have that are connected, and lets their Pools be made.
//
// A custom resource is the durable record. A CSI call makes the resource say what is wanted, the
// actor makes that true on the array, and the answer comes from the resource's status. So the
// controller may end at any instant: the next one reads the resources, looks at the array, and goes on.
package pools
