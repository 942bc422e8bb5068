package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	// commitBuckets begin below a sync of a good disk and end where a disk has to
	// be called broken.
	commitBuckets = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
	changeBuckets = []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024}
)

// store is about the records on disk.
type store struct {
	durations prometheus.Histogram
	changes   prometheus.Histogram
	errors    prometheus.Counter
	reserved  prometheus.Gauge
}

func newStore(r *prometheus.Registry) store {
	return store{
		durations: histogram(r, "store_commit_duration_seconds",
			"How long it took to make records durable, whatever the outcome.", commitBuckets),
		changes:  histogram(r, "store_commit_changes", "Records that one commit made durable together.", changeBuckets),
		errors:   counter(r, "store_commit_errors_total", "Commits of records that failed."),
		reserved: gauge(r, "store_reserved", "1 when room is reserved for records on a full disk, else 0."),
	}
}

// Committed notes that a commit of so many changes has ended, with an error when
// it failed.
func (m *Metrics) Committed(took time.Duration, changes int, err error) {
	m.store.durations.Observe(took.Seconds())
	m.changes.Observe(float64(changes))
	if err != nil {
		m.store.errors.Inc()
	}
}

// Reserved sets whether room for records is reserved for when the disk is full.
func (m *Metrics) Reserved(reserved bool) { m.reserved.Set(number(reserved)) }

func number(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
