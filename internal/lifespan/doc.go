// Package lifespan is the arithmetic of how long retained volumes are kept: the pressure factor,
// deadlines, the free space that the kubelet wants, and how much of what is lacking is on its way.
//
// A retained volume expires at
//
//	unpublished + lifespan x factor
//
// The factor is 1 while the headroom is free above the floor, and falls linearly to 0 as the
// headroom fills up. So pressure shortens every lifespan by the same share. Of the volumes with
// one lifespan, those that were unpublished first go first.
//
// The package does no I/O, keeps no volumes and never asks for the time: the caller brings what it
// measured. A deadline keeps the monotonic clock reading of the time that it is computed from, so
// a step of the wall clock moves no deadline.
package lifespan
