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

// Method counts the calls of one CSI method.
type Method struct {
	inFlight  prometheus.Gauge
	durations prometheus.ObserverVec
	// ok is looked up once, at the first call: a method that is never called has no metric.
	ok func() prometheus.Observer
}

// Method returns the counters of a CSI method, such as NodePublishVolume.
func (m *Metrics) Method(name string) *Method {
	durations := m.calls.MustCurryWith(prometheus.Labels{"method": name})
	return &Method{
		inFlight: m.inFlight, durations: durations,
		ok: sync.OnceValue(func() prometheus.Observer { return durations.WithLabelValues(codeOK) }),
	}
}

// CallBegan counts a call that has come.
func (m *Method) CallBegan() { m.inFlight.Inc() }

// CallEnded counts a call that was answered with a gRPC code, such as OK.
func (m *Method) CallEnded(code string, took time.Duration) {
	m.inFlight.Dec()
	observer := m.ok()
	if code != codeOK {
		observer = m.durations.WithLabelValues(code)
	}
	observer.Observe(took.Seconds())
}

// PodsSeen sets the number of pods in the kubelet's directory.
func (m *Metrics) PodsSeen(pods int) { m.pods.Set(float64(pods)) }

// Registered sets whether the kubelet has registered the driver.
func (m *Metrics) Registered(registered bool) { m.registered.WithLabelValues().Set(number(registered)) }
