package metrics

import "github.com/prometheus/client_golang/prometheus"

// log is about the daemon's own log.
type log struct {
	dropped prometheus.Counter
}

func newLog(r *prometheus.Registry) log {
	return log{dropped: counter(r, "log_lines_dropped_total", "Lines of the log that were dropped, because stdout was not read fast enough.")}
}

// LogLineDropped notes that a line of the log was dropped.
func (m *Metrics) LogLineDropped() { m.dropped.Inc() }
