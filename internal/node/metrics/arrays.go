package metrics

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/katbox/katbox/internal/model/duration"
)

// arrays are metrics of the volumes of remote arrays. Without that part of the daemon there are none: each
// appears when it is first set.
type arrays struct {
	calls      *prometheus.HistogramVec
	inFlight   *prometheus.GaugeVec
	registered *prometheus.GaugeVec
	node       *prometheus.GaugeVec
	staged     *prometheus.GaugeVec
	sessions   *prometheus.GaugeVec
	waiting    *prometheus.GaugeVec
	since      *moment
}

func newArrays(r *prometheus.Registry) arrays {
	return arrays{
		calls: histogramVec(r, "array_csi_operation_duration_seconds",
			"Duration of CSI calls for volumes of arrays, by method and gRPC code.", callBuckets, "method", "code"),
		inFlight: gaugeVec(r, "array_csi_operations_in_flight", "CSI calls for volumes of arrays that are not answered yet."),
		registered: gaugeVec(r, "array_registered",
			"1 if the kubelet has registered the driver of the arrays, else 0; absent if the daemon does not register itself."),
		node: gaugeVec(r, "array_node_known",
			"1 if the node's PoolNode says what it should, as far as the API server has told, else 0."),
		staged:   gaugeVec(r, "array_staged_volumes", "Volumes of arrays that are staged on the node, by protocol.", "protocol"),
		sessions: gaugeVec(r, "array_sessions", "iSCSI sessions of the node with arrays: up, or down while volumes need them.", "state"),
		waiting:  gaugeVec(r, "array_waiting_operations", "Operations on volumes that wait for an array that does not answer."),
		since: register(r, newMoment("array_waiting_since_timestamp_seconds",
			"When the oldest of the operations that wait for an array began, as Unix time; 0 if none waits.")),
	}
}

// ArraysServed makes the metrics of the arrays appear.
func (m *Metrics) ArraysServed() {
	m.arrays.inFlight.WithLabelValues().Set(0)
	m.ArrayNodeKnown(false)
	m.ArrayStaged("nfs", 0)
	m.ArrayStaged("iscsi", 0)
	m.ArraySessions(0, 0)
	m.ArrayWaits(0, time.Time{})
}

// ArrayMethod returns the counters of a CSI method for volumes of arrays.
func (m *Metrics) ArrayMethod(name string) *Method {
	durations := m.arrays.calls.MustCurryWith(prometheus.Labels{"method": name})
	return &Method{
		inFlight: m.arrays.inFlight.WithLabelValues(), durations: durations,
		ok: sync.OnceValue(func() prometheus.Observer { return durations.WithLabelValues(codeOK) }),
	}
}

// ArrayRegistered sets whether the kubelet has registered the driver of the arrays.
func (m *Metrics) ArrayRegistered(registered bool) {
	m.arrays.registered.WithLabelValues().Set(number(registered))
}

// ArrayNodeKnown sets whether the node's PoolNode says what it should.
func (m *Metrics) ArrayNodeKnown(known bool) { m.arrays.node.WithLabelValues().Set(number(known)) }

// ArrayStaged counts volumes that are staged over a protocol, nfs or iscsi, or with a negative number no
// longer.
func (m *Metrics) ArrayStaged(protocol string, change int) {
	m.arrays.staged.WithLabelValues(protocol).Add(float64(change))
}

// ArraySessions sets how many iSCSI sessions are up, and how many are down while volumes need them.
func (m *Metrics) ArraySessions(up, down int) {
	m.arrays.sessions.WithLabelValues("up").Set(float64(up))
	m.arrays.sessions.WithLabelValues("down").Set(float64(down))
}

// ArrayWaits sets how many operations wait for an array, and since when the oldest does.
func (m *Metrics) ArrayWaits(operations int, since time.Time) {
	m.arrays.waiting.WithLabelValues().Set(float64(operations))
	if operations == 0 {
		since = time.Time{}
	}
	m.arrays.since.at.Store(&since)
}

// moment is a metric of a time, which goes by the wall clock of each scrape; 0 for the zero time. It is absent until
// it is first set.
type moment struct {
	desc *prometheus.Desc
	at   atomic.Pointer[time.Time]
}

func newMoment(name, help string) *moment {
	return &moment{desc: prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, nil, nil)}
}

// Describe is for the registry.
func (m *moment) Describe(to chan<- *prometheus.Desc) { to <- m.desc }

// Collect is for the registry.
func (m *moment) Collect(to chan<- prometheus.Metric) {
	at := m.at.Load()
	if at == nil {
		return
	}
	seconds := 0.0
	if !at.IsZero() {
		seconds = float64(duration.ByNow(*at).UnixMilli()) / 1000
	}
	to <- prometheus.MustNewConstMetric(m.desc, prometheus.GaugeValue, seconds)
}
