package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/testing/roottest"
)

// hugeFiles is how many files the huge volume has; KATBOX_BENCH_FILES sets it.
const hugeFiles = 100_000

// BenchmarkHugeVolume compares, within one run and on a file system with a journal,
//
//   - the time that publishes take while a huge volume is being erased with the time
//     that they take before (p99-ratio, at 4 callers without a pause);
//   - the files that Katbox erases each second without calls with those of rm -rf on
//     the same tree (rate-ratio).
func BenchmarkHugeVolume(b *testing.B) {
	files := hugeFiles
	if set, err := strconv.Atoi(os.Getenv("KATBOX_BENCH_FILES")); err == nil {
		files = set
	}
	for b.Loop() {
		h := newHuge(b, files)
		before := h.latencies(func() bool { return false })
		h.expire()
		during := h.latencies(h.empty)
		b.ReportMetric(float64(p99(during))/float64(p99(before)), "p99-ratio")
		b.ReportMetric(float64(p99(before).Microseconds())/1000, "before-p99-ms")
		b.ReportMetric(float64(p99(during).Microseconds())/1000, "during-p99-ms")
		b.ReportMetric(float64(len(during)), "during-calls")
		h.d.eventuallyWithin(time.Hour, "the huge volume erased", h.empty)

		var ours, rm time.Duration
		for range 2 { // in turns: other load on the disk should affect both
			rm += h.remove()
			ours += h.erase()
		}
		b.ReportMetric(rm.Seconds()/ours.Seconds(), "rate-ratio")
		b.ReportMetric(float64(2*files)/ours.Seconds(), "files/s")
		b.ReportMetric(h.d.memory("VmHWM"), "MiB-peak")
		h.d.end()
	}
}

// huge is a daemon with a volume that becomes huge.
type huge struct {
	b     *testing.B
	d     *daemon
	mnt   string
	files int
	made  int
}

func newHuge(b *testing.B, files int) *huge {
	// An inode for each file twice over, and something for everything else.
	mnt := roottest.FileSystem(b, "ext4", 2048+files/100, "-i", "4096")
	d := newDaemon(b, "--afterlifespan", "3s", "--log-level", "info", "--workdir", filepath.Join(mnt, "work"))
	roottest.UnmountBelowAtEnd(b, mnt)
	d.start()
	return &huge{b: b, d: d, mnt: mnt, files: files}
}

// fillTree makes the files, empty ones, in one directory.
func (h *huge) fillTree(dir string) {
	h.b.Helper()
	for i := range h.files {
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("file-%d", i)))
		if err != nil {
			h.b.Fatal(err)
		}
		f.Close()
	}
	syncFS(h.b, h.mnt)
}

// expire makes a huge volume and returns when it is in the trash.
func (h *huge) expire() {
	h.b.Helper()
	h.made++
	id := volumeID(1_000_000 + h.made)
	h.d.publish(testPod, id)
	h.fillTree(h.d.target(testPod))
	h.d.unpublish(testPod, id)
	h.d.eventually("the huge volume deleted", func() bool { return !exists(filepath.Join(h.mnt, "work", testPod, id)) })
}

// empty reports whether everything deleted is erased.
func (h *huge) empty() bool { return len(trashOf(h.b, filepath.Join(h.mnt, "work"))) == 0 }

func (h *huge) erase() time.Duration {
	h.b.Helper()
	h.expire()
	began := time.Now()
	h.d.eventuallyWithin(time.Hour, "the huge volume erased", h.empty)
	syncFS(h.b, h.mnt)
	return time.Since(began)
}

// remove returns the time of rm -rf for the same.
func (h *huge) remove() time.Duration {
	h.b.Helper()
	dir := filepath.Join(h.mnt, "tree")
	if err := os.Mkdir(dir, 0o700); err != nil {
		h.b.Fatal(err)
	}
	h.fillTree(dir)
	began := time.Now()
	if out, err := exec.Command("rm", "-rf", dir).CombinedOutput(); err != nil {
		h.b.Fatalf("%v: %s", err, out)
	}
	syncFS(h.b, h.mnt)
	return time.Since(began)
}

// latencies are those of publishes by a few callers, for some seconds or until the end.
func (h *huge) latencies(ended func() bool) []time.Duration {
	const callers, longest = 4, 15 * time.Second
	ctx, cancel := context.WithTimeout(h.b.Context(), longest)
	defer cancel()
	return h.d.call(ctx, callers, ended).publish
}
