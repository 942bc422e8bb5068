// Package faults breaks things: the faults of the node, which [Node.Run] carries
// out at their places in the run, and those of single volumes, which are
// functions for whoever lets the pods live and die.
//
// Each fault is real: a process is killed, a disk is full, a directory is gone.
// Each notes in the timeline or in the volume's story when it began and ended,
// so that the checker knows what it excuses. What a fault made, it takes away
// again, also when the run ends in the middle of it.
package faults
