// Package metrics is what the daemon tells Prometheus of itself. [Metrics] has a
// method for everything that may happen, in the words of Katbox; whoever makes
// it happen calls it, and no caller knows what is counted in which way.
//
// Nothing here waits, fails or is done at intervals: a call is a few atomic
// additions, and all else is done when somebody asks for the metrics. Only this
// package knows the Prometheus library.
package metrics
