package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// callBuckets go from a sync of the disk to two minutes, when a kubelet gives up.
var callBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120}

// codeOK is the code of a call without an error.
const codeOK = "OK"

// calls are metrics of CSI calls.
type calls struct {
	durations *prometheus.HistogramVec
	inFlight  prometheus.Gauge
}

func newCalls(r *prometheus.Registry) calls {
	return calls{
		durations: histogramVec(r, "csi_operation_duration_seconds", "Duration of CSI calls, by method and gRPC code.",
			callBuckets, "method", "code"),
		inFlight: gauge(r, "csi_operations_in_flight", "CSI calls that are not answered yet."),
	}
}

// Method counts the calls of one CSI method.
type Method struct {
	calls     calls
	durations prometheus.ObserverVec
	// ok is looked up once, at the first call: a method that is never called has no metric.
	ok func() prometheus.Observer
}

// Method returns the counters of a CSI method, such as NodePublishVolume.
func (m *Metrics) Method(name string) *Method {
	durations := m.calls.durations.MustCurryWith(prometheus.Labels{"method": name})
	return &Method{
		calls: m.calls, durations: durations,
		ok: sync.OnceValue(func() prometheus.Observer { return durations.WithLabelValues(codeOK) }),
	}
}

// CallBegan counts a call that has come.
func (m *Method) CallBegan() { m.calls.inFlight.Inc() }

// CallEnded counts a call that was answered with a gRPC code, such as OK.
func (m *Method) CallEnded(code string, took time.Duration) {
	m.calls.inFlight.Dec()
	observer := m.ok()
	if code != codeOK {
		observer = m.durations.WithLabelValues(code)
	}
	observer.Observe(took.Seconds())
}

// kubelet are metrics of the kubelet that calls.
type kubelet struct {
	pods prometheus.Gauge
	// registered has no labels and at most one value: it does not exist before it is set.
	registered *prometheus.GaugeVec
}

func newKubelet(r *prometheus.Registry) kubelet {
	return kubelet{
		pods: gauge(r, "pods_directory_entries", "Pods in the kubelet's pods directory when it was last read."),
		registered: gaugeVec(r, "registered",
			"1 if the kubelet has registered the driver, else 0; absent if the daemon does not register itself."),
	}
}

// PodsSeen sets the number of pods in the kubelet's directory.
func (m *Metrics) PodsSeen(pods int) { m.pods.Set(float64(pods)) }

// Registered sets whether the kubelet has registered the driver.
func (m *Metrics) Registered(registered bool) { m.registered.WithLabelValues().Set(number(registered)) }
