// Package pools is the controller's side of persistent volumes: one actor for each pool, and one for
// each volume, snapshot and attachment that is changing.
//
// A custom resource is the durable record. A CSI call makes the resource say what is wanted, the
// actor makes that true on the array, and the answer comes from the resource's status. So the
// controller may end at any instant: the next one reads the resources, looks at the array, and goes on.
package pools
