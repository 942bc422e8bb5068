package poolmetrics

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
)

// Pool takes over what a Pool says of itself.
func (m *Metrics) Pool(p *v1alpha1.Pool) {
	name := p.Name
	m.states.DeletePartialMatch(prometheus.Labels{"pool": name})
	if p.Status.State != "" {
		m.states.WithLabelValues(name, string(p.Status.State)).Set(1)
	}
	m.modes.DeletePartialMatch(prometheus.Labels{"pool": name})
	if mode := p.Status.Capacity.Mode; mode != "" {
		m.modes.WithLabelValues(name, string(mode)).Set(1)
	}
	c, n := p.Status.Capacity, p.Status.Counters
	for of, quantity := range map[string]float64{
		"total": float64(c.Total.Value()), "available": float64(c.Available.Value()), "provisioned": float64(c.Provisioned.Value()),
		"retained": float64(c.Retained.Value()),
	} {
		m.capacity.WithLabelValues(name, of).Set(quantity)
	}
	for of, number := range map[string]int32{
		"volumes": n.Volumes, "external": n.External, "snapshots": n.Snapshots, "attachments": n.Attachments,
		"retained": n.Retained,
	} {
		m.objects.WithLabelValues(name, of).Set(float64(number))
	}
}

// PoolGone forgets a Pool.
func (m *Metrics) PoolGone(name string) {
	for _, of := range []*prometheus.GaugeVec{m.states, m.modes, m.capacity, m.objects} {
		of.DeletePartialMatch(prometheus.Labels{"pool": name})
	}
}

// OperationEnded counts an operation, such as create or attach.
func (m *Metrics) OperationEnded(operation string, took time.Duration, err error) {
	m.operations.WithLabelValues(operation, outcomeOf(err)).Observe(took.Seconds())
}

// RetainedEnded counts a volume that is not retained any more, by the reason.
func (m *Metrics) RetainedEnded(reason string) { m.retainedEnds.WithLabelValues(reason).Inc() }

// Unclaimed sets how many volumes have neither a claim nor a PersistentVolume.
func (m *Metrics) Unclaimed(volumes int) { m.unclaimed.WithLabelValues().Set(float64(volumes)) }

// outcomeOf is the word for how an operation ended.
func outcomeOf(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, volume.ErrUncertain):
		return "uncertain"
	case errors.Is(err, volume.ErrBusy):
		return "busy"
	case errors.Is(err, volume.ErrUnavailable), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return "unavailable"
	case errors.Is(err, volume.ErrNoSpace):
		return "no_room"
	case errors.Is(err, volume.ErrInvalid), errors.Is(err, volume.ErrConflict), errors.Is(err, volume.ErrNotFound),
		errors.Is(err, pools.ErrInUse), errors.Is(err, pools.ErrOutOfRange):
		return "refused"
	}
	return "failed"
}

// Called counts a request to an array. The pattern is its path without the object's ID.
func (m *Metrics) Called(method, pattern, outcome string, took time.Duration) {
	m.arrayCalls.WithLabelValues(method, pattern, outcome).Observe(took.Seconds())
}

// ActorRestarted counts a restart of an actor after a panic.
func (m *Metrics) ActorRestarted() { m.restarts.Inc() }

// VolumeParked counts an actor that kept failing, until VolumeUnparked.
func (m *Metrics) VolumeParked() { m.parked.Inc() }

// VolumeUnparked counts an actor that works again.
func (m *Metrics) VolumeUnparked() { m.parked.Dec() }

// Method counts the calls of one CSI method.
type Method struct {
	inFlight  prometheus.Gauge
	durations prometheus.ObserverVec
}

// Method returns the counters of a CSI method, such as CreateVolume.
func (m *Metrics) Method(name string) *Method {
	return &Method{inFlight: m.inFlight, durations: m.calls.MustCurryWith(prometheus.Labels{"method": name})}
}

// CallBegan counts a call that has come.
func (m *Method) CallBegan() { m.inFlight.Inc() }

// CallEnded counts a call that was answered with a gRPC code, such as OK.
func (m *Method) CallEnded(code string, took time.Duration) {
	m.inFlight.Dec()
	m.durations.WithLabelValues(code).Observe(took.Seconds())
}
