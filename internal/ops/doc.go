// Package ops answers over HTTP how the daemon is: /healthz and /readyz for the
// kubelet's probes, /metrics for Prometheus, / for people. It listens from before
// the daemon recovers until after it has stopped, so that it can say so.
package ops
