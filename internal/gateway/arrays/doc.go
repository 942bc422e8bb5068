// Package arrays has the retained volumes that no node has: those of deleted claims that are kept on remote arrays. To the
// fleet they are one more node, with the name [fleet.Arrays], which answers lists from memory.
//
// It reads them from the API server, where each is a PoolVolume in the state Retained. So they are listed while the
// controller is away, and no program has to be trusted about them that was not trusted before. The API server sends those
// in that state alone: of 200,000 PoolVolumes few are retained, and nothing is kept of the others. One of Kubernetes 1.30,
// or with the definition of an earlier Katbox, cannot select by the state. It sends all of them, page by page, and the
// others are dropped here.
//
// What is on the disks of nodes is left out: their daemons list that, and read it.
package arrays
