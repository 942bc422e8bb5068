package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/katbox/katbox/internal/volume"
)

// latenessBuckets tell a deadline that was kept, within a second, from one that
// was missed because the daemon did not run.
var latenessBuckets = []float64{.01, .05, .1, .5, 1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 24 * 3600}

// volumes are about what becomes of the volumes.
type volumes struct {
	phases             byPhase
	mounts             prometheus.Gauge
	retainedBytes      prometheus.Gauge
	retainedUnmeasured prometheus.Gauge
	evictions          map[volume.Reason]prometheus.Counter
	lateness           prometheus.Histogram
	unmountRetries     prometheus.Counter
	stuck              byPhase
	parked             prometheus.Gauge
	restarts           prometheus.Counter
}

func newVolumes(r *prometheus.Registry) volumes {
	evictions := counterVec(r, "evictions_total",
		"Retained volumes that were deleted: expired, or early because the disk ran out of bytes or of inodes.", "reason")
	v := volumes{
		phases: newByPhase(gaugeVec(r, "volumes", "Volumes by phase.", "phase")),
		mounts: gauge(r, "mounts", "Targets where volumes are mounted, or are about to be: being published, or published again after a reboot."),

		retainedBytes:      gauge(r, "retained_bytes", "What the retained volumes that were measured occupy on disk."),
		retainedUnmeasured: gauge(r, "retained_unmeasured_volumes", "Retained volumes of which it is not known yet what they occupy."),

		evictions: map[volume.Reason]prometheus.Counter{},
		lateness: histogram(r, "deadline_lateness_seconds",
			"How long after its deadline the deletion of an expired volume ended.", latenessBuckets),
		unmountRetries: counter(r, "unmount_retries_total", "Unmounts that the daemon tried again by itself."),
		stuck: newByPhase(gaugeVec(r, "stuck_volumes",
			"Volumes whose unmount or deletion failed and is tried again, by phase.", "phase")),
		parked:   gauge(r, "parked_volumes", "Volumes whose actor failed too often and is restarted only after a while."),
		restarts: counter(r, "actor_restarts_total", "Restarts of volume actors after a failure."),
	}
	for _, reason := range []volume.Reason{volume.Expired, volume.ForBytes, volume.ForInodes} {
		v.evictions[reason] = evictions.WithLabelValues(reason.String())
	}
	return v
}

// VolumeChanged notes that what is known of a volume is no longer before, but
// after. Nothing known is nil.
func (m *Metrics) VolumeChanged(before, after *volume.Record) {
	from, to := volume.PhaseOf(before), volume.PhaseOf(after)
	m.phases.move(from, to)
	if change := mountsOf(after) - mountsOf(before); change != 0 {
		m.mounts.Add(float64(change))
	}
}

func mountsOf(r *volume.Record) int {
	if r == nil {
		return 0
	}
	return len(r.Targets)
}

// RetainedBytes sets what the retained volumes occupy that were measured.
func (m *Metrics) RetainedBytes(bytes uint64) { m.retainedBytes.Set(float64(bytes)) }

// RetainedUnmeasured sets how many retained volumes were not measured yet.
func (m *Metrics) RetainedUnmeasured(volumes int) { m.retainedUnmeasured.Set(float64(volumes)) }

// VolumeDeleted notes that the deletion of a retained volume has ended, so long
// after the end of its lifespan. That counts only if this was the reason.
func (m *Metrics) VolumeDeleted(reason volume.Reason, late time.Duration) {
	if evictions, ok := m.evictions[reason]; ok {
		evictions.Inc()
	}
	if reason == volume.Expired && late >= 0 {
		m.lateness.Observe(late.Seconds())
	}
}

// UnmountRetried notes that an unmount is tried again.
func (m *Metrics) UnmountRetried() { m.unmountRetries.Inc() }

// DeletionsFailing sets how many volumes could not be deleted and are tried again.
func (m *Metrics) DeletionsFailing(volumes int) {
	m.stuck[volume.Deleting].Set(float64(volumes))
}

// VolumeStuck notes that a volume whose unmount failed in the phase before is stuck
// in the phase after. The zero phase stands for one that gets on.
func (m *Metrics) VolumeStuck(before, after volume.Phase) { m.stuck.move(before, after) }

// VolumeParked notes that a volume's actor has failed too often.
func (m *Metrics) VolumeParked() { m.parked.Inc() }

// VolumeUnparked notes that such an actor is given another try.
func (m *Metrics) VolumeUnparked() { m.parked.Dec() }

// ActorRestarted notes that a volume's actor was restarted after a failure.
func (m *Metrics) ActorRestarted() { m.restarts.Inc() }

// byPhase is a gauge for each phase of a volume.
type byPhase map[volume.Phase]prometheus.Gauge

func newByPhase(vec *prometheus.GaugeVec) byPhase {
	gauges := byPhase{}
	for phase := volume.Publishing; phase.Valid(); phase++ {
		gauges[phase] = vec.WithLabelValues(phase.String())
	}
	return gauges
}

// move takes one volume from a phase to another. There is no gauge for the zero
// phase.
func (b byPhase) move(from, to volume.Phase) {
	if from == to {
		return
	}
	if gauge, ok := b[from]; ok {
		gauge.Dec()
	}
	if gauge, ok := b[to]; ok {
		gauge.Inc()
	}
}
