// Package metrics is what the daemon reports to Prometheus. [Metrics] has a method for every event,
// in the words of Katbox. A call is a few atomic additions; it neither waits nor fails.
package metrics
