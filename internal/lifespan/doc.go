// Package lifespan is the arithmetic of how long retained volumes are kept:
// the pressure factor, deadlines, and which volume is due next.
//
// A retained volume expires at
//
//	unpublished + lifespan x factor
//
// where the factor is 1 while the share of the disk that is free is at least
// the headroom, and falls linearly to 0 as the headroom fills up. So pressure
// shortens every lifespan by the same share, and the volumes that were
// unpublished first go first.
//
// The package does no I/O, starts no goroutine and never asks for the time:
// the caller brings what it measured. Deadlines keep the monotonic clock
// reading of the time they are computed from, so that a step of the wall clock
// moves none of them.
package lifespan
