package poolmetrics

import (
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"github.com/katbox/katbox/internal/model/pools"
)

const (
	namespace = "katbox"
	subsystem = "pools"
	// maxScrapes bounds the answers that are made at the same time, for a few servers.
	maxScrapes = 8
	// scrapeLimit bounds the time of one answer.
	scrapeLimit = 10 * time.Second
)

// callBuckets go from an answer that needs no array to three minutes, when a sidecar gives up and an
// array may still work.
var callBuckets = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 180}

// Metrics are all metrics of one controller. Its methods may be called from several goroutines.
type Metrics struct {
	registry *prometheus.Registry

	leader       prometheus.Gauge
	watched      *prometheus.GaugeVec
	states       *prometheus.GaugeVec
	modes        *prometheus.GaugeVec
	capacity     *prometheus.GaugeVec
	objects      *prometheus.GaugeVec
	operations   *prometheus.HistogramVec
	retainedEnds *prometheus.CounterVec
	unclaimed    *prometheus.GaugeVec
	arrayCalls   *prometheus.HistogramVec
	restarts     prometheus.Counter
	parked       prometheus.Gauge
	calls        *prometheus.HistogramVec
	inFlight     prometheus.Gauge
	dropped      prometheus.Counter
}

// New returns the metrics of a controller of the given version and revision, each with its first value.
func New(version, revision string) *Metrics {
	r := prometheus.NewRegistry()
	with := promauto.With(r)
	m := &Metrics{
		registry: r,
		leader:   with.NewGauge(gauge("leader", "1 if this controller holds the lease and serves, else 0.")),
		watched: with.NewGaugeVec(gauge("watch_up",
			"1 if the objects of a kind are watched, else 0: changes of them are not noticed then."), []string{"kind"}),
		states: with.NewGaugeVec(gauge("pool_state", "1 for the state that a pool is in."), []string{"pool", "state"}),
		modes: with.NewGaugeVec(gauge("pool_capacity_mode",
			"1 for how full a pool is: normal, alert, protected or emergency. New volumes go to normal ones."), []string{"pool", "mode"}),
		capacity: with.NewGaugeVec(gauge("pool_capacity_bytes",
			"Size of a pool: total, available on its disks, provisioned to volumes, retained for deleted claims."), []string{"pool", "of"}),
		objects: with.NewGaugeVec(gauge("pool_objects",
			"Objects of a pool: volumes, retained (volumes of deleted claims, among them), external (volumes that Katbox has not made), "+
				"snapshots, attachments."), []string{"pool", "of"}),
		operations: with.NewHistogramVec(histogram("operation_duration_seconds",
			"Duration of operations on volumes, snapshots and attachments, by operation and outcome."), []string{"operation", "outcome"}),
		retainedEnds: with.NewCounterVec(counter("retained_ended_total",
			"Volumes of deleted claims that are not retained any more, by reason: Expired, Evicted, Erased, Vanished or Restored."),
			[]string{"reason"}),
		unclaimed: with.NewGaugeVec(gauge("unclaimed_volumes",
			"Volumes that have neither a claim nor a PersistentVolume, by the last look, once a day; absent before the first one."), nil),
		arrayCalls: with.NewHistogramVec(histogram("array_call_duration_seconds",
			"Duration of requests to arrays, by method, path and outcome; waiting for a turn counts."), []string{"method", "path", "outcome"}),
		restarts: with.NewCounter(counter("actor_restarts_total", "Restarts of an actor after a panic.")),
		parked: with.NewGauge(gauge("parked",
			"Volumes, snapshots, attachments and pools whose actor kept failing, and is retried slowly.")),
		calls: with.NewHistogramVec(histogram("csi_operation_duration_seconds",
			"Duration of CSI calls, by method and gRPC code."), []string{"method", "code"}),
		inFlight: with.NewGauge(gauge("csi_operations_in_flight", "CSI calls that are running.")),
		dropped: with.NewCounter(counter("log_lines_dropped_total",
			"Log lines that were dropped because stdout was not read fast enough.")),
	}
	for _, reason := range pools.Ends {
		m.retainedEnds.WithLabelValues(string(reason))
	}
	with.NewGaugeVec(gauge("build_info", "Always 1; which build of the controller this is."),
		[]string{"version", "revision", "goversion"}).WithLabelValues(version, revision, runtime.Version()).Set(1)
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func gauge(name, help string) prometheus.GaugeOpts {
	return prometheus.GaugeOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: help}
}

func counter(name, help string) prometheus.CounterOpts {
	return prometheus.CounterOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: help}
}

func histogram(name, help string) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: help, Buckets: callBuckets}
}

// Gather returns the current metrics; it makes m a prometheus.Gatherer.
func (m *Metrics) Gather() ([]*dto.MetricFamily, error) { return m.registry.Gather() }

// Handler answers with the current metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes, Timeout: scrapeLimit})
}

// Leads sets whether this controller holds the lease and serves.
func (m *Metrics) Leads(leads bool) { set(m.leader, leads) }

// Watched sets whether the objects of a kind are watched.
func (m *Metrics) Watched(kind string, up bool) { set(m.watched.WithLabelValues(kind), up) }

func set(g prometheus.Gauge, to bool) {
	if to {
		g.Set(1)
	} else {
		g.Set(0)
	}
}

// LogLineDropped counts a log line that was dropped.
func (m *Metrics) LogLineDropped() { m.dropped.Inc() }
