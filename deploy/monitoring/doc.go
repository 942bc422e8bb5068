// Package monitoring holds the tests of what stands beside it: the dashboard and
// the alert rules use metrics that the daemon and the gateway have, and all of them.
package monitoring
