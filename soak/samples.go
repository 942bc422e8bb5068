package main

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// sampleInterval is how often there is a sample.
	sampleInterval = time.Second
	// fineInterval is used in the first minute, after which most runs are over.
	fineInterval = 200 * time.Millisecond
	finePart     = time.Minute
)

// sample is how the run stands at one moment. Its field names are part of the
// format of --json; see [result].
type sample struct {
	// Seconds since the beginning of the run.
	Seconds float64 `json:"seconds"`
	// Since the beginning: pods that are over, calls with an answer, calls
	// answered with an error, broken promises.
	Pods       int `json:"pods"`
	Calls      int `json:"calls"`
	Errors     int `json:"errors"`
	Violations int `json:"violations"`
	// Mounted volumes are published at this moment, retained ones unpublished
	// and not expired.
	Mounted  int `json:"mounted"`
	Retained int `json:"retained"`
	// The successful calls since the sample before; missing if there were none.
	Publish   *interval `json:"publish,omitempty"`
	Unpublish *interval `json:"unpublish,omitempty"`
	// Daemon is missing while no process of it runs.
	Daemon *daemonSample `json:"daemon,omitempty"`
	// Disk is missing if the file system does not say.
	Disk *diskSample `json:"disk,omitempty"`
}

// interval is about the successful calls of one method between two samples.
type interval struct {
	Calls     int     `json:"calls"`
	P50Millis float64 `json:"p50_ms"`
	P99Millis float64 `json:"p99_ms"`
}

// daemonSample is what the daemon's process uses.
type daemonSample struct {
	// CPUSeconds is user and system time since the beginning of the run, with
	// the processes that were killed.
	CPUSeconds   float64 `json:"cpu_seconds"`
	RSSBytes     int64   `json:"rss_bytes"`
	RSSAnonBytes int64   `json:"rss_anon_bytes"`
	Threads      int     `json:"threads"`
}

// diskSample is about the file system of the working directory.
type diskSample struct {
	FreeBytes  uint64 `json:"free_bytes"`
	FreeInodes uint64 `json:"free_inodes"`
}

// mark is a kill of the daemon. Seconds count from the beginning of the run.
type mark struct {
	Killed float64 `json:"killed"`
	// Ready is when the next process was ready; missing if none was.
	Ready *float64 `json:"ready,omitempty"`
}

// startSampling takes samples until the returned function is called.
func startSampling(d *daemon, work string, s *stats, f *findings) (stop func()) {
	done := make(chan struct{})
	var sampling sync.WaitGroup
	sampling.Go(func() {
		for {
			takeSample(d, work, s, f)
			next := sampleInterval
			if time.Since(s.began) < finePart {
				next = fineInterval
			}
			select {
			case <-time.After(next):
			case <-done:
				takeSample(d, work, s, f)
				return
			}
		}
	})
	return func() {
		close(done)
		sampling.Wait()
	}
}

// takeSample adds one sample to the stats.
func takeSample(d *daemon, work string, s *stats, f *findings) {
	daemon, disk, violations := sampleDaemon(d), sampleDisk(work), f.sum()
	s.update(func(s *stats) {
		t := s.sums()
		s.samples = append(s.samples, sample{
			Seconds: seconds(time.Since(s.began)),
			Pods:    t.pods, Calls: t.calls, Errors: t.errors, Violations: violations,
			Mounted: s.published, Retained: s.retained,
			Publish: s.interval(publish), Unpublish: s.interval(unpublish),
			Daemon: daemon, Disk: disk,
		})
	})
}

// interval is about the calls since it was last asked. Its caller has the lock.
func (s *stats) interval(name method) *interval {
	m := s.methods[name]
	if m == nil || len(m.fresh) == 0 {
		return nil
	}
	i := &interval{
		Calls:     len(m.fresh),
		P50Millis: millis(quantile(m.fresh, 0.5)),
		P99Millis: millis(quantile(m.fresh, 0.99)),
	}
	m.fresh = m.fresh[:0]
	return i
}

func sampleDaemon(d *daemon) *daemonSample {
	u, ok := d.used.look()
	if !ok {
		return nil
	}
	return &daemonSample{CPUSeconds: seconds(u.cpu), RSSBytes: u.rss, RSSAnonBytes: u.anonymous, Threads: u.threads}
}

func sampleDisk(dir string) *diskSample {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return nil
	}
	return &diskSample{FreeBytes: fs.Bavail * uint64(fs.Bsize), FreeInodes: fs.Ffree}
}

// seconds and millis round to a microsecond: more digits would only be noise in
// a file.
func seconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1e6 }
func millis(d time.Duration) float64  { return float64(d.Microseconds()) / 1e3 }
