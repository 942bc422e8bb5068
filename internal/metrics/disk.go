package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/katbox/katbox/internal/volume"
)

// disk is about the working directory's file system.
type disk struct {
	factor        prometheus.Gauge
	bytes, inodes space
	errors        prometheus.Counter
}

type space struct{ size, free, headroom, floor, line prometheus.Gauge }

func newDisk(r *prometheus.Registry) disk {
	d := disk{
		factor: gauge(r, "pressure_factor", "Share of their lifespan that retained volumes may keep, from 1 (enough space is free) to 0."),
		bytes: space{
			size:     gauge(r, "filesystem_size_bytes", "Size of the working directory's file system."),
			free:     gauge(r, "filesystem_free_bytes", "Bytes free on the working directory's file system."),
			headroom: gauge(r, "filesystem_headroom_bytes", "Bytes that should stay free; with fewer, volumes are deleted early."),
			floor:    gauge(r, "filesystem_floor_bytes", "Bytes with no more than which free retained volumes are deleted at once."),
			line: gauge(r, "kubelet_line_bytes",
				"Bytes with fewer than which free the kubelet evicts pods; 0 where it does not look at this file system."),
		},
		inodes: space{
			size:     gauge(r, "filesystem_inodes", "Inodes of the working directory's file system; 0 when it sets no limit."),
			free:     gauge(r, "filesystem_free_inodes", "Inodes free on the working directory's file system."),
			headroom: gauge(r, "filesystem_headroom_inodes", "Inodes that should stay free; with fewer, volumes are deleted early."),
			floor:    gauge(r, "filesystem_floor_inodes", "Inodes with no more than which free retained volumes are deleted at once."),
			line: gauge(r, "kubelet_line_inodes",
				"Inodes with fewer than which free the kubelet evicts pods; 0 where it does not look at this file system."),
		},
		errors: counter(r, "filesystem_errors_total", "Times that the working directory's file system could not be measured."),
	}
	d.factor.Set(1)
	return d
}

func (s space) set(total, free, line, floor, headroom int64) {
	s.size.Set(float64(total))
	s.free.Set(float64(free))
	s.headroom.Set(float64(headroom))
	s.floor.Set(float64(floor))
	s.line.Set(float64(line))
}

// DiskMeasured sets the room on the file system and the pressure factor that follows from it.
// With less free than line, the kubelet evicts pods. With no more than floor, retained volumes
// go at once. The headroom is what should stay free.
func (m *Metrics) DiskMeasured(factor float64, is volume.Space, line, floor, headroom volume.Size) {
	m.factor.Set(factor)
	m.bytes.set(is.Total.Bytes, is.Free.Bytes, line.Bytes, floor.Bytes, headroom.Bytes)
	m.inodes.set(is.Total.Inodes, is.Free.Inodes, line.Inodes, floor.Inodes, headroom.Inodes)
}

// DiskNotMeasured notes that the file system could not be measured, so that no
// pressure is assumed.
func (m *Metrics) DiskNotMeasured() {
	m.factor.Set(1)
	m.disk.errors.Inc()
}
