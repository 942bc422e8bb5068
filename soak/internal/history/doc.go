// Package history holds what happened in a run: the story of each volume (its
// calls, answers and phases), the times in which something was wrong with the
// node, and the promises that were found broken. The kubelet and the faults
// write it, the checker and the report read it.
//
// It judges nothing; that is done in package check.
package history
