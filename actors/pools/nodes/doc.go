// Package nodes is what the controller knows of pools on nodes: which daemon is connected, which of them has a disk, and which Pool
// has which place. Only the supervisor's turn uses it. It decides whom to believe; what follows from that, its caller does.
package nodes
