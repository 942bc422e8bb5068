package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/katbox/katbox/internal/model/volume"
)

// latenessBuckets tell deadlines that were kept from those missed because the daemon did not run.
var latenessBuckets = []float64{.01, .05, .1, .5, 1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 24 * 3600}

// keptBuckets tell volumes that were kept as promised, which are beyond the last one, from those
// that went early, and how early those went.
var keptBuckets = []float64{.01, .05, .1, .25, .5, .75, .9, .99}

// volumes are metrics of the volumes.
type volumes struct {
	phases             byPhase
	mounts             prometheus.Gauge
	retainedBytes      prometheus.Gauge
	retainedUnmeasured prometheus.Gauge
	evictions          map[volume.Reason]prometheus.Counter
	broken             map[bool]prometheus.Counter
	lateness           prometheus.Histogram
	kept               prometheus.Histogram
	unmountRetries     prometheus.Counter
	stuck              byPhase
	parked             prometheus.Gauge
	unmounted          prometheus.Gauge
	restarts           prometheus.Counter
	leases             prometheus.Gauge
	pinned             prometheus.Gauge
	pinnedBytes        prometheus.Gauge
	attached           prometheus.Gauge
	attachedBytes      prometheus.Gauge
	attachedLate       prometheus.Gauge
	outcomes           map[volume.Outcome]prometheus.Counter
}

func newVolumes(r *prometheus.Registry) volumes {
	evictions := counterVec(r, "evictions_total",
		"Retained volumes that were deleted: expired, early because the disk ran out of bytes or of inodes, or removed by a person.", "reason")
	broken := counterVec(r, "broken_guarantees_total",
		"Volumes that were pinned, or younger than the minimum lifespan, and were ordered to go because the disk was all but full.",
		"guarantee")
	v := volumes{
		phases: newByPhase(gaugeVec(r, "volumes", "Volumes by phase.", "phase")),
		mounts: gauge(r, "mounts", "Targets at which volumes are mounted, or will be: published now, or again after a reboot."),

		retainedBytes:      gauge(r, "retained_bytes", "Disk space of the retained volumes that were measured."),
		retainedUnmeasured: gauge(r, "retained_unmeasured_volumes", "Retained volumes whose disk space was not measured yet."),

		evictions: map[volume.Reason]prometheus.Counter{},
		broken:    map[bool]prometheus.Counter{true: broken.WithLabelValues("pin"), false: broken.WithLabelValues("min-lifespan")},
		lateness: histogram(r, "deadline_lateness_seconds",
			"Time from the deadline of an expired volume to the end of its deletion.", latenessBuckets),
		kept: histogram(r, "retention_kept_ratio",
			"How long deleted volumes were kept, as a share of what they were promised; without those that a person ended.", keptBuckets),
		unmountRetries: counter(r, "unmount_retries_total", "Unmounts that the daemon repeated by itself."),
		stuck: newByPhase(gaugeVec(r, "stuck_volumes",
			"Volumes whose unmount or deletion failed and is repeated, by phase.", "phase")),
		parked: gauge(r, "parked_volumes", "Volumes whose actor failed too often; it is restarted after a while."),
		unmounted: gauge(r, "unmounted_volumes",
			"Published volumes that are mounted nowhere, while nothing tells whether their pods will come back."),
		restarts: counter(r, "actor_restarts_total", "Restarts of volume actors after a failure."),
		leases:   gauge(r, "read_leases", "Permissions to read retained volumes that readers hold."),

		pinned:      gauge(r, "pinned_volumes", "Retained volumes that are pinned."),
		pinnedBytes: gauge(r, "pinned_bytes", "Disk space of the pinned volumes that were measured."),

		attached:      gauge(r, "attached_volumes", "Retained volumes that pods have attached."),
		attachedBytes: gauge(r, "attached_bytes", "Disk space of the attached volumes that were measured."),
		attachedLate:  gauge(r, "attached_late_volumes", "Retained volumes that pods have attached for longer than --max-pin."),

		outcomes: map[volume.Outcome]prometheus.Counter{},
	}
	outcomes := counterVec(r, "outcomes_total",
		"How the pods of volumes ended, as was known when the volume was retained; an outcome that comes later counts too.", "outcome")
	for o := volume.OutcomeUnknown; o.Valid(); o++ {
		v.outcomes[o] = outcomes.WithLabelValues(o.String())
	}
	for _, reason := range []volume.Reason{
		volume.Expired, volume.ForBytes, volume.ForInodes, volume.Purged, volume.ForReleased, volume.ForNamespace,
		volume.ForFloor, volume.Interrupted, volume.ForOwner,
	} {
		v.evictions[reason] = evictions.WithLabelValues(reason.String())
	}
	return v
}

// VolumeChanged counts a volume whose record was before and is after; nil for none.
func (m *Metrics) VolumeChanged(before, after *volume.Record) {
	m.phases.move(volume.PhaseOf(before), volume.PhaseOf(after))
	m.mounts.Add(float64(mountsOf(after) - mountsOf(before)))
}

func mountsOf(r *volume.Record) int {
	if r == nil {
		return 0
	}
	return len(r.Targets)
}

// RetainedBytes sets the disk space of the retained volumes that were measured.
func (m *Metrics) RetainedBytes(bytes uint64) { m.retainedBytes.Set(float64(bytes)) }

// RetainedUnmeasured sets the number of retained volumes that were not measured yet.
func (m *Metrics) RetainedUnmeasured(volumes int) { m.retainedUnmeasured.Set(float64(volumes)) }

// VolumeDeleted counts a deleted volume. late is the time since the end of what it was promised,
// which counts if the volume has expired.
func (m *Metrics) VolumeDeleted(t volume.Tombstone, late time.Duration) {
	if evictions, ok := m.evictions[t.Reason]; ok {
		evictions.Inc()
	}
	if t.Reason == volume.Expired && late >= 0 {
		m.lateness.Observe(late.Seconds())
	}
	switch promised := t.Record.Keep(); {
	case t.Reason != volume.Expired && !t.Reason.Early():
	case t.Kept >= promised:
		m.kept.Observe(1)
	default:
		m.kept.Observe(t.Kept.Seconds() / promised.Seconds())
	}
}

// GuaranteeBroken counts a volume that was ordered to go though it was pinned, or else younger than
// the minimum lifespan.
func (m *Metrics) GuaranteeBroken(pinned bool) { m.broken[pinned].Inc() }

// UnmountRetried counts a repeated unmount.
func (m *Metrics) UnmountRetried() { m.unmountRetries.Inc() }

// DeletionsFailing sets the number of volumes whose deletion failed and is repeated.
func (m *Metrics) DeletionsFailing(volumes int) { m.stuck[volume.Deleting].Set(float64(volumes)) }

// VolumeStuck moves a volume whose unmount failed from one phase to another. The zero phase stands
// for a volume that is not stuck.
func (m *Metrics) VolumeStuck(before, after volume.Phase) { m.stuck.move(before, after) }

// VolumeParked counts a volume whose actor has failed too often.
func (m *Metrics) VolumeParked() { m.parked.Inc() }

// VolumeUnmounted counts a published volume that is mounted nowhere, or one that is not any more.
func (m *Metrics) VolumeUnmounted(is bool) {
	if is {
		m.unmounted.Inc()
	} else {
		m.unmounted.Dec()
	}
}

// VolumeUnparked counts such a volume whose actor is started again.
func (m *Metrics) VolumeUnparked() { m.parked.Dec() }

// ActorRestarted counts a restart of a volume's actor after a failure.
func (m *Metrics) ActorRestarted() { m.restarts.Inc() }

// LeaseGranted counts a permission to read a retained volume, until LeaseEnded.
func (m *Metrics) LeaseGranted() { m.leases.Inc() }

// LeaseEnded counts a permission that was given back or lost.
func (m *Metrics) LeaseEnded() { m.leases.Dec() }

// Pinned sets how many retained volumes are pinned, and their disk space as far as it was measured.
func (m *Metrics) Pinned(volumes int, bytes int64) {
	m.pinned.Set(float64(volumes))
	m.pinnedBytes.Set(float64(bytes))
}

// Attached sets how many retained volumes pods have attached, and their disk space as far as it was measured.
func (m *Metrics) Attached(volumes int, bytes int64) {
	m.attached.Set(float64(volumes))
	m.attachedBytes.Set(float64(bytes))
}

// AttachedLate sets how many of them pods have for longer than a volume may be pinned.
func (m *Metrics) AttachedLate(volumes int) { m.attachedLate.Set(float64(volumes)) }

// OutcomeKnown counts how the pod of a volume ended.
func (m *Metrics) OutcomeKnown(o volume.Outcome) {
	if counter, ok := m.outcomes[o]; ok {
		counter.Inc()
	}
}

// byPhase is a gauge for each phase of a volume.
type byPhase map[volume.Phase]prometheus.Gauge

func newByPhase(vec *prometheus.GaugeVec) byPhase {
	gauges := byPhase{}
	for phase := volume.Publishing; phase.Valid(); phase++ {
		gauges[phase] = vec.WithLabelValues(phase.String())
	}
	return gauges
}

// move moves one volume between the gauges of two phases. The zero phase has no gauge.
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
