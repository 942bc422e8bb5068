package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/katbox/katbox/internal/model/local"
)

// locals are metrics of the pools on the node's disks. Without that part of the daemon there are none.
type locals struct {
	calls      *prometheus.HistogramVec
	inFlight   *prometheus.GaugeVec
	registered *prometheus.GaugeVec
	operations *prometheus.HistogramVec
	up         *prometheus.GaugeVec
	bytes      *prometheus.GaugeVec
	volumes    *prometheus.GaugeVec
	snapshots  *prometheus.GaugeVec
}

func newLocals(r *prometheus.Registry) locals {
	return locals{
		calls: histogramVec(r, "local_csi_operation_duration_seconds",
			"Duration of CSI calls for volumes in pools of the node, by method and gRPC code.", callBuckets, "method", "code"),
		inFlight: gaugeVec(r, "local_csi_operations_in_flight", "CSI calls for volumes in pools of the node that are not answered yet."),
		registered: gaugeVec(r, "local_registered",
			"1 if the kubelet has registered the driver of the node's pools, else 0; absent if the daemon does not register itself."),
		operations: histogramVec(r, "local_operation_duration_seconds",
			"Duration of what is done to volumes in pools of the node, by operation and result: ok or error.", callBuckets, "operation", "result"),
		up: gaugeVec(r, "local_pool_up", "1 while the disk of the pool can be used and takes writes, else 0.", "class", "path"),
		bytes: gaugeVec(r, "local_pool_bytes",
			"Bytes of the pool's disk: its size, what is free, and what is promised to volumes and snapshots.", "class", "path", "kind"),
		volumes: gaugeVec(r, "local_volumes",
			"Volumes in the pool: ready, retained after the end of their claims, or unfinished, which are being made or deleted.",
			"class", "path", "state"),
		snapshots: gaugeVec(r, "local_snapshots", "Snapshots in the pool.", "class", "path"),
	}
}

// LocalServed makes the metrics of the pools on the node appear.
func (m *Metrics) LocalServed() { m.locals.inFlight.WithLabelValues().Set(0) }

// LocalMethod returns the counters of a CSI method for volumes in pools of the node.
func (m *Metrics) LocalMethod(name string) *Method {
	durations := m.locals.calls.MustCurryWith(prometheus.Labels{"method": name})
	return &Method{
		inFlight: m.locals.inFlight.WithLabelValues(), durations: durations,
		ok: sync.OnceValue(func() prometheus.Observer { return durations.WithLabelValues(codeOK) }),
	}
}

// LocalRegistered sets whether the kubelet has registered the driver of the node's pools.
func (m *Metrics) LocalRegistered(registered bool) {
	m.locals.registered.WithLabelValues().Set(number(registered))
}

// LocalOperation says how long something took that was done to a volume or a snapshot.
func (m *Metrics) LocalOperation(name string, took time.Duration, err error) {
	result := "ok"
	if err != nil {
		result = "error"
	}
	m.locals.operations.WithLabelValues(name, result).Observe(took.Seconds())
}

// LocalPool sets how a pool is; up is false while its disk is away.
func (m *Metrics) LocalPool(p local.Pool, counts local.Counts, up bool) {
	m.locals.up.WithLabelValues(p.Class, p.Path).Set(number(up))
	for kind, bytes := range map[string]int64{"size": p.Total, "free": p.Free, "promised": p.Provisioned} {
		m.locals.bytes.WithLabelValues(p.Class, p.Path, kind).Set(float64(bytes))
	}
	for state, n := range map[string]int{"ready": counts.Ready, "retained": counts.Retained, "unfinished": counts.Unfinished} {
		m.locals.volumes.WithLabelValues(p.Class, p.Path, state).Set(float64(n))
	}
	m.locals.snapshots.WithLabelValues(p.Class, p.Path).Set(float64(counts.Snapshots))
}
