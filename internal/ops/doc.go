// Package ops reports the daemon's state over HTTP: /healthz and /readyz for the kubelet's probes,
// /metrics for Prometheus, / for people. It listens from before the daemon recovers until after it
// has stopped, so that it can report both.
package ops
