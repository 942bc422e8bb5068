// Package metrics is what the daemon reports to Prometheus. [Metrics] has a method for
// every event, in the words of Katbox; the code that makes an event happen calls it and
// does not know what is counted how.
//
// Nothing here waits, fails or runs at intervals: a call is a few atomic additions, and
// the rest happens when Prometheus asks. Only this package knows the Prometheus library.
package metrics
