package report

import (
	"sync"
	"time"

	"github.com/katbox/katbox/soak/internal/history"
)

// sample is how the run stands at one moment. Its field names are part of the
// format of --json; see [Result].
type sample struct {
	// Seconds since the beginning of the run.
	Seconds float64 `json:"seconds"`
	// Since the beginning: pods that are over, calls with an answer, calls
	// answered with an error, broken promises, volumes that expired or were
	// evicted. Calls with bad input are in none of them.
	Pods       int `json:"pods"`
	Calls      int `json:"calls"`
	Errors     int `json:"errors"`
	Violations int `json:"violations"`
	Expired    int `json:"expired"`
	Evicted    int `json:"evicted"`
	// At this moment: pods on the node, volumes that are published, volumes
	// that are unpublished and have their deadline before them.
	Running  int `json:"running"`
	Mounted  int `json:"mounted"`
	Retained int `json:"retained"`
	// The successful calls since the sample before; missing if there were none.
	Publish   *interval `json:"publish,omitempty"`
	Unpublish *interval `json:"unpublish,omitempty"`
	// Driver is missing while no process of it runs.
	Driver *driverSample `json:"driver,omitempty"`
	// Disk is missing if the file system does not say.
	Disk *diskSample `json:"disk,omitempty"`
}

// interval is about the successful calls of one method between two samples.
type interval struct {
	Calls     int     `json:"calls"`
	P50Millis float64 `json:"p50_ms"`
	P99Millis float64 `json:"p99_ms"`
}

// driverSample is what the driver's process uses.
type driverSample struct {
	// CPUSeconds is user and system time since the beginning of the run, with
	// the processes that were killed.
	CPUSeconds   float64 `json:"cpu_seconds"`
	RSSBytes     int64   `json:"rss_bytes"`
	RSSAnonBytes int64   `json:"rss_anon_bytes"`
	Threads      int     `json:"threads"`
}

// diskSample is about the file system of the working directory.
type diskSample struct {
	FreeBytes   uint64 `json:"free_bytes"`
	TotalBytes  uint64 `json:"total_bytes"`
	FreeInodes  uint64 `json:"free_inodes"`
	TotalInodes uint64 `json:"total_inodes"`
	// Pressure is the factor for lifespans that follows from the rest and the
	// driver's headroom: 1 without pressure, 0 with the disk full.
	Pressure float64 `json:"pressure"`
}

// sampleInterval is how long it is to the next sample: most runs are over in a
// minute, and a day should not have more samples than can be drawn.
func sampleInterval(since time.Duration) time.Duration {
	switch {
	case since < time.Minute:
		return 200 * time.Millisecond
	case since < time.Hour:
		return time.Second
	default:
		return 10 * time.Second
	}
}

// StartSampling takes samples until the returned function is called.
func (r *Run) StartSampling() (stop func()) {
	done := make(chan struct{})
	var sampling sync.WaitGroup
	sampling.Go(func() {
		for {
			r.takeSample()
			select {
			case <-time.After(sampleInterval(time.Since(r.began))):
			case <-done:
				return
			}
		}
	})
	return func() {
		close(done)
		sampling.Wait()
	}
}

// takeSample notes how the run stands.
func (r *Run) takeSample() {
	r.asking.Lock()
	defer r.asking.Unlock()
	from := r.options.Sources
	kept := from.kept()
	s := sample{
		Violations: from.violations(),
		Expired:    kept.Expired, Evicted: kept.Evicted, Retained: kept.Following,
		Running: int(r.Count.PodsRunning.Load()), Mounted: int(r.Count.Mounted.Load()),
	}
	used, runs := from.usage()
	if runs {
		s.Driver = &driverSample{
			CPUSeconds: seconds(used.CPU), RSSBytes: used.RSS, RSSAnonBytes: used.Anonymous, Threads: used.Threads,
		}
	}
	if d, ok := from.disk(); ok {
		s.Disk = &diskSample{
			FreeBytes: d.FreeBytes, TotalBytes: d.TotalBytes, FreeInodes: d.FreeInodes, TotalInodes: d.TotalInodes,
			Pressure: d.pressure(r.options.Workload.Driver.Headroom),
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if runs {
		r.cpu, r.peak, r.threads = max(r.cpu, used.CPU), max(r.peak, used.Peak, used.RSS), max(r.threads, used.Threads)
	}
	s.Seconds = seconds(time.Since(r.began))
	s.Pods, s.Calls, s.Errors = int(r.Count.PodsOver.Load()), r.calls.answered, r.calls.errors
	s.Publish, s.Unpublish = r.calls.interval(history.Publish), r.calls.interval(history.Unpublish)
	r.samples = append(r.samples, s)
}
