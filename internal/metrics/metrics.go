package metrics

import (
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
)

const (
	namespace = "katbox"
	// maxScrapes bounds the answers that are made at the same time: a few servers
	// may ask.
	maxScrapes = 8
	// scrapeLimit bounds how long one is made. With a limit it is written when it is
	// ready and not while it is made, so that slow readers keep nobody else from it.
	scrapeLimit = 10 * time.Second
)

// Metrics are all metrics of one daemon. Its methods may be called from several
// goroutines.
type Metrics struct {
	registry *prometheus.Registry
	calls
	volumes
	trash
	disk
	store
	kubelet
	log
}

// New returns the metrics of a daemon of the given version and revision, all of
// them at their beginning.
func New(version, revision string) *Metrics {
	r := prometheus.NewRegistry()
	m := &Metrics{
		registry: r, calls: newCalls(r), volumes: newVolumes(r), trash: newTrash(r), disk: newDisk(r), store: newStore(r),
		kubelet: newKubelet(r), log: newLog(r),
	}
	build := gaugeVec(r, "build_info", "Always 1; which build of the daemon this is.", "version", "revision", "goversion")
	build.WithLabelValues(version, revision, runtime.Version()).Set(1)
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Gather returns the metrics as they are at that moment; it makes m a
// prometheus.Gatherer.
func (m *Metrics) Gather() ([]*dto.MetricFamily, error) { return m.registry.Gather() }

// Handler answers with the metrics as they are at that moment.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes, Timeout: scrapeLimit})
}
