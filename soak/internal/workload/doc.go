// Package workload says what a run of the soak does to a node: how many pods,
// how they come and go, what they write, what goes wrong. A [Workload] is what
// a person writes, in a small YAML file or by the name of a preset. A [Plan] is
// that and a seed, and decides everything random of a run: the same workload
// and seed make the same pods, calls and faults, whatever the machine does.
//
// It decides and does nothing: no I/O but reading the YAML, no clock.
package workload
