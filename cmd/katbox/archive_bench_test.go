package main

import (
	"context"
	"sync"
	"testing"
	"time"
)

// BenchmarkCallsWhileArchiving compares, within one run, the slowest one in a hundred of the kubelet's calls with a daemon that
// archives a large volume at the usual rate, and with the same daemon while its bucket takes nothing, in turns.
func BenchmarkCallsWhileArchiving(b *testing.B) {
	const turns, each, megabytes = 3, 3 * time.Second, 640
	a := newArchive(b)
	var open sync.RWMutex
	a.at = func(bool) bool {
		open.RLock()
		defer open.RUnlock()
		return false
	}
	open.Lock()
	d := newArchivingDaemon(b, a, "--archive", "OnFailure", "--archive-insecure", "--http-endpoint", httpEndpoint())
	d.start()
	a.fails(d, 1, noise(megabytes<<20))
	read := func() float64 { return d.metrics()["katbox_archive_uploaded_bytes_total"] }
	var still, busy, ratios []float64
	began, uploaded, took := 0.0, 0.0, 0.0
	for b.Loop() {
		for range turns {
			measure := func() float64 {
				ctx, cancel := context.WithTimeout(b.Context(), each)
				defer cancel()
				times := d.call(ctx, 1, func() bool {
					time.Sleep(10 * time.Millisecond) // calls without a pause would leave the archive no time
					return false
				})
				return p99(times.publish).Seconds() * 1000
			}
			off := measure()
			began = read()
			open.Unlock()
			on := measure()
			open.Lock()
			uploaded, took = uploaded+read()-began, took+each.Seconds()
			still, busy, ratios = append(still, off), append(busy, on), append(ratios, on/off)
		}
	}
	began = read()
	open.Unlock()
	time.Sleep(each)
	b.ReportMetric((read()-began)/each.Seconds()/(1<<20), "MiB/s-without-calls")
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(still), "ms-p99-still")
	b.ReportMetric(median(busy), "ms-p99-archiving")
	b.ReportMetric(median(ratios), "ratio")
	b.ReportMetric(uploaded/took/(1<<20), "MiB/s-with-calls")
	b.ReportMetric(d.memory("VmHWM"), "MiB-peak")
}
