package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/katbox/katbox/internal/model/volume"
)

var (
	// commitBuckets begin below the sync of a good disk and end where a disk is broken.
	commitBuckets = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
	changeBuckets = []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024}
)

// disk are metrics of the working directory's file system and of what is erased there.
type disk struct {
	factor        pressure
	bytes, inodes space
	errors        prometheus.Counter
	trash         prometheus.Gauge
	setAside      prometheus.Gauge
	stopped       prometheus.Gauge
	erasedEntries prometheus.Counter
	erasedVolumes prometheus.Counter
}

// pressure is a ratio, and its name says so. The old name stays for a release, since alerts and dashboards of others ask for it.
type pressure struct{ ratio, factor prometheus.Gauge }

func (p pressure) set(factor float64) {
	p.ratio.Set(factor)
	p.factor.Set(factor)
}

type space struct{ size, free, headroom, floor, line prometheus.Gauge }

func newDisk(r *prometheus.Registry) disk {
	d := disk{
		factor: pressure{
			ratio:  gauge(r, "pressure_ratio", "Share of their lifespan that retained volumes may keep, from 1 (enough space is free) to 0."),
			factor: gauge(r, "pressure_factor", "The old name of katbox_pressure_ratio; it goes with the next release."),
		},
		bytes: space{
			size:     gauge(r, "filesystem_size_bytes", "Size of the working directory's file system."),
			free:     gauge(r, "filesystem_free_bytes", "Free bytes on the working directory's file system."),
			headroom: gauge(r, "filesystem_headroom_bytes", "Free bytes below which retained volumes are deleted early."),
			floor:    gauge(r, "filesystem_floor_bytes", "Free bytes at or below which retained volumes are deleted at once."),
			line:     gauge(r, "kubelet_line_bytes", "Free bytes below which the kubelet evicts pods; 0 if it does not watch this file system."),
		},
		inodes: space{
			size:     gauge(r, "filesystem_inodes", "Inodes of the working directory's file system; 0 if it sets no limit."),
			free:     gauge(r, "filesystem_free_inodes", "Free inodes on the working directory's file system."),
			headroom: gauge(r, "filesystem_headroom_inodes", "Free inodes below which retained volumes are deleted early."),
			floor:    gauge(r, "filesystem_floor_inodes", "Free inodes at or below which retained volumes are deleted at once."),
			line:     gauge(r, "kubelet_line_inodes", "Free inodes below which the kubelet evicts pods; 0 if it does not watch this file system."),
		},
		errors:        counter(r, "filesystem_errors_total", "Failed measurements of the working directory's file system."),
		trash:         gauge(r, "trash_entries", "Deleted volumes whose data is not erased yet, except those set aside."),
		setAside:      gauge(r, "trash_set_aside_entries", "Deleted volumes whose data could not be erased; the daemon tries again."),
		stopped:       gauge(r, "evictions_stopped", "1 while no retained volume is deleted early, because those that were made no room."),
		erasedEntries: counter(r, "erased_entries_total", "Erased files and directories of deleted volumes."),
		erasedVolumes: counter(r, "erased_volumes_total", "Deleted volumes whose data was erased."),
	}
	d.factor.set(1)
	return d
}

func (s space) set(total, free, line, floor, headroom int64) {
	s.size.Set(float64(total))
	s.free.Set(float64(free))
	s.headroom.Set(float64(headroom))
	s.floor.Set(float64(floor))
	s.line.Set(float64(line))
}

// DiskMeasured sets the space of the file system, its marks, and the pressure factor.
func (m *Metrics) DiskMeasured(factor float64, is volume.Space, line, floor, headroom volume.Size) {
	m.factor.set(factor)
	m.bytes.set(is.Total.Bytes, is.Free.Bytes, line.Bytes, floor.Bytes, headroom.Bytes)
	m.inodes.set(is.Total.Inodes, is.Free.Inodes, line.Inodes, floor.Inodes, headroom.Inodes)
}

// DiskNotMeasured counts a failed measurement, after which no pressure is assumed.
func (m *Metrics) DiskNotMeasured() {
	m.factor.set(1)
	m.errors.Inc()
}

// TrashHolds sets the number of trash entries to be erased, and of those that could not be.
func (m *Metrics) TrashHolds(entries, setAside int) {
	m.trash.Set(float64(entries))
	m.setAside.Set(float64(setAside))
}

// EvictionsStopped sets whether nothing goes early because that makes no room.
func (m *Metrics) EvictionsStopped(stopped bool) { m.stopped.Set(number(stopped)) }

// EntriesErased counts erased files and directories.
func (m *Metrics) EntriesErased(count int) { m.erasedEntries.Add(float64(count)) }

// VolumeErased counts a deleted volume whose data is all erased.
func (m *Metrics) VolumeErased() { m.erasedVolumes.Inc() }

// Committed counts a commit of a number of changes, with an error if it failed.
func (m *Metrics) Committed(took time.Duration, changes int, err error) {
	m.commits.Observe(took.Seconds())
	m.commitChanges.Observe(float64(changes))
	if err != nil {
		m.commitErrors.Inc()
	}
}

// Reserved sets whether room for records is reserved for when the disk is full.
func (m *Metrics) Reserved(reserved bool) { m.reserved.Set(number(reserved)) }
