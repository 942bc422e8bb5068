package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// callBuckets span what a call may take: a publish mostly waits for a sync of
// the disk, and a kubelet gives up after two minutes.
var callBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120}

// codeOK is the code of a call without an error.
const codeOK = "OK"

// calls are about what is asked over CSI.
type calls struct {
	durations *prometheus.HistogramVec
	inFlight  prometheus.Gauge
}

func newCalls(r *prometheus.Registry) calls {
	return calls{
		durations: histogramVec(r, "csi_operation_duration_seconds", "How long CSI calls took, by method and gRPC code.",
			callBuckets, "method", "code"),
		inFlight: gauge(r, "csi_operations_in_flight", "CSI calls that are not answered yet."),
	}
}

// Method counts the calls of one CSI method.
type Method struct {
	calls     calls
	durations prometheus.ObserverVec
	// ok is looked up once, and not before there is a call: of methods that nobody
	// calls nothing is told.
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

// CallBegan notes that a call has come.
func (m *Method) CallBegan() { m.calls.inFlight.Inc() }

// CallEnded notes that a call was answered with a gRPC code, such as OK.
func (m *Method) CallEnded(code string, took time.Duration) {
	m.calls.inFlight.Dec()
	observer := m.ok()
	if code != codeOK {
		observer = m.durations.WithLabelValues(code)
	}
	observer.Observe(took.Seconds())
}
