package metrics

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// hangs is from when on a write hangs.
const hangs = time.Second

// records tell how far the disk is behind what calls were answered. They are asked for at each scrape: while the disk hangs
// nothing comes to an end that could say so.
type records struct {
	waits atomic.Bool
	times atomic.Pointer[RecordTimes]
}

// RecordTimes tell since when something is so, or zero where it is not. They never wait.
type RecordTimes struct {
	// Waiting: the oldest record waits that calls were answered with and that is not durable. Writing: a call writes to the
	// journal.
	Waiting, Writing func() time.Time
}

func (x *records) register(r *prometheus.Registry) {
	register(r, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: namespace, Name: "records_wait",
		Help: "1 while calls wait until their records are on the disk, although they need not, else 0."}, x.wait))
	register(r, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: namespace, Name: "records_durable_seconds",
		Help: "Age of the oldest record that calls were answered with and that is not on the disk yet; 0 if all are."}, x.notDurable))
}

// Waits sets whether calls wait for the disk that need not.
func (m *Metrics) Waits(waits bool) { m.records.waits.Store(waits) }

// WatchRecords sets what tells how far the disk is behind.
func (m *Metrics) WatchRecords(times RecordTimes) { m.records.times.Store(&times) }

// wait is 1 while calls wait that need not, also for a write that hangs.
func (x *records) wait() float64 {
	if times := x.times.Load(); times != nil && age(times.Writing()) >= hangs {
		return 1
	}
	return number(x.waits.Load())
}

// notDurable is how long the oldest record has waited that is not durable, in seconds.
func (x *records) notDurable() float64 {
	times := x.times.Load()
	if times == nil {
		return 0
	}
	return age(times.Waiting()).Seconds()
}

func age(since time.Time) time.Duration {
	if since.IsZero() {
		return 0
	}
	return time.Since(since)
}
