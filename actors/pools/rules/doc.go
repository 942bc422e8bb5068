// Package rules holds what the custom resources of pools mean: which kind of pool a volume is in, what is unfinished, what is
// retained and for how long, which errors are final. All of it follows from its arguments alone. It does no I/O, and knows no
// actor; the actors of the controller build on it.
package rules
