package metrics

import "github.com/prometheus/client_golang/prometheus"

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
			line:     gauge(r, "kubelet_line_bytes", "Bytes with fewer than which free the kubelet evicts pods; 0 where it does not look at this file system."),
		},
		inodes: space{
			size:     gauge(r, "filesystem_inodes", "Inodes of the working directory's file system; 0 when it sets no limit."),
			free:     gauge(r, "filesystem_free_inodes", "Inodes free on the working directory's file system."),
			headroom: gauge(r, "filesystem_headroom_inodes", "Inodes that should stay free; with fewer, volumes are deleted early."),
			floor:    gauge(r, "filesystem_floor_inodes", "Inodes with no more than which free retained volumes are deleted at once."),
			line:     gauge(r, "kubelet_line_inodes", "Inodes with fewer than which free the kubelet evicts pods; 0 where it does not look at this file system."),
		},
		errors: counter(r, "filesystem_errors_total", "Times that the working directory's file system could not be measured."),
	}
	d.factor.Set(1)
	return d
}

// Space is what a file system has of bytes or inodes.
type Space struct {
	Total uint64
	Free  uint64
	// Line: with less free the kubelet evicts pods; 0 for none.
	Line float64
	// Floor: with no more than this free retained volumes go at once.
	Floor float64
	// Headroom is how much should stay free.
	Headroom float64
}

func (s space) set(to Space) {
	s.size.Set(float64(to.Total))
	s.free.Set(float64(to.Free))
	s.headroom.Set(to.Headroom)
	s.floor.Set(to.Floor)
	s.line.Set(to.Line)
}

// DiskMeasured sets what the file system has, and the pressure factor that
// follows from it.
func (m *Metrics) DiskMeasured(factor float64, bytes, inodes Space) {
	m.factor.Set(factor)
	m.bytes.set(bytes)
	m.inodes.set(inodes)
}

// DiskNotMeasured notes that the file system could not be measured, so that no
// pressure is assumed.
func (m *Metrics) DiskNotMeasured() {
	m.factor.Set(1)
	m.disk.errors.Inc()
}
