// Package ops reports the state of a daemon or a gateway over HTTP: /healthz and /readyz for the
// kubelet's probes, /metrics for Prometheus, / for people. It listens from before the daemon
// recovers until after it has stopped, so that it can report both.
package ops
