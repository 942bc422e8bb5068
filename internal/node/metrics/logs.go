package metrics

import "github.com/prometheus/client_golang/prometheus"

// logs are metrics of what is kept of what containers print. They have no values where nothing is.
type logs struct {
	// open has no labels and at most one value.
	open           *prometheus.GaugeVec
	kept           *prometheus.CounterVec
	bytes, missing *prometheus.CounterVec
}

func newLogs(r *prometheus.Registry) logs {
	return logs{
		open: gaugeVec(r, "logs_open_files", "Files of logs of pods that are held open; absent with --logs=off."),
		kept: counterVec(r, "logs_kept_total",
			"Pods whose logs were to be kept, by whether all of them were (whole), a part (cut) or nothing (failed); "+
				"absent with --logs=off.", "result"),
		bytes:   counterVec(r, "logs_kept_bytes_total", "Bytes of logs of pods that were kept; absent with --logs=off."),
		missing: counterVec(r, "logs_missing_bytes_total", "Bytes of logs of pods beyond the limit, or unreadable; absent with --logs=off."),
	}
}

// LogsFollowed says that logs are kept. From now on each metric of them has a value: Prometheus sees no increase in a counter that
// appears with its first event.
func (m *Metrics) LogsFollowed() {
	m.LogsOpen(0)
	for _, result := range []string{"whole", "cut", "failed"} {
		m.logs.kept.WithLabelValues(result)
	}
	m.logs.bytes.WithLabelValues()
	m.logs.missing.WithLabelValues()
}

// LogsOpen says how many files of logs are open.
func (m *Metrics) LogsOpen(files int) { m.logs.open.WithLabelValues().Set(float64(files)) }

// LogsKept counts a pod whose logs were kept, with how many bytes of them were and were not.
func (m *Metrics) LogsKept(bytes, missing int64, interrupted bool) {
	result := "whole"
	if missing > 0 || interrupted {
		result = "cut"
	}
	m.logs.kept.WithLabelValues(result).Inc()
	m.logs.bytes.WithLabelValues().Add(float64(bytes))
	m.logs.missing.WithLabelValues().Add(float64(missing))
}

// LogsNotKept counts a pod whose logs could not be kept.
func (m *Metrics) LogsNotKept() { m.logs.kept.WithLabelValues("failed").Inc() }
