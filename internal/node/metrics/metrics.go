package metrics

import (
	"io"
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

const (
	namespace = "katbox"
	// maxScrapes bounds the answers that are made at the same time, for a few servers.
	maxScrapes = 8
	// scrapeLimit bounds the time of one answer. With a timeout the answer is buffered, so a slow
	// reader does not occupy one of the maxScrapes slots.
	scrapeLimit = 10 * time.Second
)

// Metrics are all metrics of one daemon. Its methods may be called from several goroutines.
type Metrics struct {
	registry *prometheus.Registry
	calls    *prometheus.HistogramVec
	inFlight prometheus.Gauge
	pods     prometheus.Gauge
	// registered has no labels and at most one value: it does not exist before it is set.
	registered *prometheus.GaugeVec
	// policyGood is as registered is.
	policyGood *prometheus.GaugeVec
	volumes
	disk
	quotas
	reads
	gateways
	controllers
	outcomeSources
	arrays          arrays
	locals          locals
	commits         prometheus.Histogram
	commitChanges   prometheus.Histogram
	commitErrors    prometheus.Counter
	reserved        prometheus.Gauge
	records         records
	logs            logs
	archive         archive
	logLinesDropped prometheus.Counter
}

// New returns the metrics of a daemon of the given version and revision, each with its first value.
func New(version, revision string) *Metrics {
	r := prometheus.NewRegistry()
	m := &Metrics{
		registry: r, volumes: newVolumes(r), disk: newDisk(r), quotas: newQuotas(r), reads: newReads(r), gateways: newGateways(r),
		controllers:    newControllers(r),
		outcomeSources: newOutcomeSources(r), arrays: newArrays(r), locals: newLocals(r), logs: newLogs(r), archive: newArchive(r),
		calls: histogramVec(r, "csi_operation_duration_seconds", "Duration of CSI calls, by method and gRPC code.",
			callBuckets, "method", "code"),
		inFlight: gauge(r, "csi_operations_in_flight", "CSI calls that are not answered yet."),
		pods:     gauge(r, "pods_directory_entries", "Pods in the kubelet's pods directory when it was last read."),
		registered: gaugeVec(r, "registered",
			"1 if the kubelet has registered the driver, else 0; absent if the daemon does not register itself."),
		policyGood: gaugeVec(r, "policy_file_good",
			"1 if the policy file was good when it was last read, else 0: then the last good one holds; absent without a policy file."),
		commits:         histogram(r, "store_commit_duration_seconds", "Duration of commits of records, successful or not.", commitBuckets),
		commitChanges:   histogram(r, "store_commit_changes", "Records that one commit made durable together.", changeBuckets),
		commitErrors:    counter(r, "store_commit_errors_total", "Failed commits of records."),
		reserved:        gauge(r, "store_reserved", "1 if room is reserved for records on a full disk, else 0."),
		logLinesDropped: counter(r, "log_lines_dropped_total", "Log lines that were dropped because stdout was not read fast enough."),
	}
	m.records.register(r)
	build := gaugeVec(r, "build_info", "Always 1; which build of the daemon this is.", "version", "revision", "goversion")
	build.WithLabelValues(version, revision, runtime.Version()).Set(1)
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Gather returns the current metrics; it makes m a prometheus.Gatherer.
func (m *Metrics) Gather() ([]*dto.MetricFamily, error) { return m.registry.Gather() }

// Handler answers with the current metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes, Timeout: scrapeLimit})
}

// WriteText writes the current metrics in the text format of Prometheus.
func (m *Metrics) WriteText(w io.Writer) error {
	families, err := m.Gather()
	if err != nil {
		return err
	}
	for _, family := range families {
		if _, err := expfmt.MetricFamilyToText(w, family); err != nil {
			return err
		}
	}
	return nil
}

// PolicyRead reports whether the policy file was good when it was read.
func (m *Metrics) PolicyRead(good bool) { m.policyGood.WithLabelValues().Set(number(good)) }

// LogLineDropped counts a log line that was dropped.
func (m *Metrics) LogLineDropped() { m.logLinesDropped.Inc() }

// Each of these makes one collector and registers it, so that none is forgotten. A name that is
// used twice ends the daemon at its start.

func counter(r *prometheus.Registry, name, help string) prometheus.Counter {
	return register(r, prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}))
}

func counterVec(r *prometheus.Registry, name, help string, labels ...string) *prometheus.CounterVec {
	return register(r, prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels))
}

func gauge(r *prometheus.Registry, name, help string) prometheus.Gauge {
	return register(r, prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}))
}

func gaugeVec(r *prometheus.Registry, name, help string, labels ...string) *prometheus.GaugeVec {
	return register(r, prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, labels))
}

func histogram(r *prometheus.Registry, name, help string, buckets []float64) prometheus.Histogram {
	return register(r, prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}))
}

func histogramVec(r *prometheus.Registry, name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	opts := prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}
	return register(r, prometheus.NewHistogramVec(opts, labels))
}

func register[C prometheus.Collector](r *prometheus.Registry, collector C) C {
	r.MustRegister(collector)
	return collector
}

func number(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
