// Package daemon runs the driver under test: it starts its binary, kills it,
// starts it again, and ends it. What the driver uses is summed over all its
// processes, each of which is a testbed.Process.
//
// It does not judge: that the driver ended on its own, or did not when it was
// told to, is an error for others to report.
package daemon
