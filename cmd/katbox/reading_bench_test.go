package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/testing/roottest"
)

const (
	// memoryLimit and goMemLimit are those of the manifests.
	memoryLimit = 512 << 20
	goMemLimit  = "384MiB"
	// turns is how often things that are compared take turns. A ratio is the median of theirs.
	turns = 5
)

// reading is a daemon, within the memory limit of the manifests, on a file system with a journal.
type reading struct {
	b    *testing.B
	d    *daemon
	work string
	// volumes counts those that were made.
	volumes int
}

func newReading(b *testing.B, megabytes int) *reading {
	b.Setenv(groupVariable, limitedGroup(b, "memory", memoryLimit, "memory.limit_in_bytes", "memory.max"))
	b.Setenv("GOMEMLIMIT", goMemLimit)
	mnt := roottest.FileSystem(b, "ext4", megabytes, "-i", "8192")
	work := filepath.Join(mnt, "work")
	d := newDaemon(b, "--afterlifespan", "12h", "--log-level", "info", "--workdir", work)
	roottest.UnmountBelowAtEnd(b, mnt)
	d.start()
	return &reading{b: b, d: d, work: work}
}

// retain makes a retained volume with the files that fill makes, of a namespace of its own: those of one have no
// more than their share of the streams. It returns the volume's ID, and its data directory.
func (r *reading) retain(fill func(dir string)) (id, dir string) {
	r.b.Helper()
	r.volumes++
	id = volumeID(r.volumes)
	req := r.d.request(testPod, id)
	req.VolumeContext["csi.storage.k8s.io/pod.namespace"] = fmt.Sprint("bench-", r.volumes)
	if _, err := r.d.node.NodePublishVolume(r.b.Context(), req); err != nil {
		r.b.Fatal(err)
	}
	fill(r.d.target(testPod))
	syncFS(r.b, r.work)
	r.d.unpublish(testPod, id)
	return id, filepath.Join(r.work, testPod, id)
}

// makeFile makes a file of random bytes, which take room on the disk.
func (r *reading) makeFile(path string, size int64) {
	r.b.Helper()
	f, err := os.Create(path)
	if err != nil {
		r.b.Fatal(err)
	}
	defer f.Close()
	if _, err := io.CopyN(f, rand.Reader, size); err != nil {
		r.b.Fatal(err)
	}
}

// verb is the daemon's program as a client of the daemon. What it prints is lost.
func (r *reading) verb(ctx context.Context, name string, args ...string) *exec.Cmd {
	args = append([]string{name, "--socket", r.d.layout().Admin}, args...)
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), asDaemon+"=1", groupVariable+"=")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// BenchmarkReadingBesideCalls compares, within one run, the time that calls take while 32 streams read large files with
// the time that they take without. The streams are processes, as those of kubectl exec are, and read as fast as they can.
func BenchmarkReadingBesideCalls(b *testing.B) {
	const streams, size = 32, 64 << 20
	r := newReading(b, 8<<10)
	var targets []string
	for range streams {
		id, _ := r.retain(func(dir string) { r.makeFile(filepath.Join(dir, "big"), size) })
		targets = append(targets, id+":big")
	}
	peak := r.watchMemory()
	for b.Loop() {
		var rate []float64
		r.compareCalls(func() (end func()) {
			began := time.Now()
			read, stop := r.streams(targets, size)
			return func() {
				rate = append(rate, float64(read())/time.Since(began).Seconds()/(1<<20))
				stop()
			}
		})
		b.ReportMetric(median(rate), "MiB/s-read")
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(peak(), "MiB-anon-peak")
	b.ReportMetric(r.d.memory("VmHWM"), "MiB-peak")
}

// compareCalls reports how much longer calls take while something else runs than without it, in turns, at 8 callers
// without a pause. begin starts it and end stops it, outside of the time that is measured.
func (r *reading) compareCalls(begin func() (end func())) {
	const callers, length = 8, 5 * time.Second
	calls := func() callTimes {
		ctx, cancel := context.WithTimeout(r.b.Context(), length)
		defer cancel()
		return r.d.call(ctx, callers, func() bool { return false })
	}
	var publish, unpublish, alone, during []float64
	for range turns {
		without := calls()
		end := begin()
		with := calls()
		end()
		publish = append(publish, p99(with.publish).Seconds()/p99(without.publish).Seconds())
		unpublish = append(unpublish, p99(with.unpublish).Seconds()/p99(without.unpublish).Seconds())
		alone = append(alone, p99(without.publish).Seconds()*1000)
		during = append(during, p99(with.publish).Seconds()*1000)
	}
	r.b.ReportMetric(median(publish), "publish-p99-ratio")
	r.b.ReportMetric(median(unpublish), "unpublish-p99-ratio")
	r.b.ReportMetric(median(alone), "alone-p99-ms")
	r.b.ReportMetric(median(during), "during-p99-ms")
}

// streams reads the targets over and over, each by a process of its own, from the first bytes of all
// until stop is called. read returns how many bytes they have got.
func (r *reading) streams(targets []string, size int64) (read func() int64, stop func()) {
	ctx, cancel := context.WithCancel(r.b.Context())
	var whole atomic.Int64
	running := make([]atomic.Int64, len(targets))
	var group sync.WaitGroup
	for i, target := range targets {
		group.Go(func() {
			for ctx.Err() == nil {
				cmd := r.verb(ctx, "cat", target)
				err := cmd.Start()
				if err == nil {
					running[i].Store(int64(cmd.Process.Pid))
					err = cmd.Wait()
				}
				running[i].Store(0)
				if ctx.Err() != nil {
					return
				}
				if err != nil {
					r.b.Errorf("read %s: %v", target, err)
					return
				}
				whole.Add(size)
			}
		})
	}
	read = func() int64 {
		total := whole.Load()
		for i := range running {
			total += charactersRead(int(running[i].Load()))
		}
		return total
	}
	return read, func() {
		cancel()
		group.Wait()
	}
}

// charactersRead is how many bytes a process has read by now, 0 for one that has ended.
func charactersRead(pid int) (n int64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	if err == nil {
		_, _ = fmt.Sscanf(string(text), "rchar: %d", &n) // 0 when it says nothing
	}
	return n
}

// watchMemory looks at the daemon's memory until the function that it returns is called, which
// returns the most that it had of its own, in MiB.
func (r *reading) watchMemory() (most func() float64) {
	ctx, cancel := context.WithCancel(r.b.Context())
	peak := make(chan float64, 1)
	go func() {
		var highest float64
		for ctx.Err() == nil {
			highest = max(highest, r.d.memory("RssAnon"))
			time.Sleep(20 * time.Millisecond)
		}
		peak <- highest
	}()
	return func() float64 {
		cancel()
		return <-peak
	}
}
