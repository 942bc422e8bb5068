package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// mostCost is how many times the CPU of the bare system calls and commands a stage and a publish may take.
const mostCost = 1.5

// BenchmarkArrayStage compares the CPU that the daemon takes for stage and publish of ready volumes with that of
// the bare system calls and commands that these need, in turns in one run: for one volume again and again, and
// for twenty in a row. The bare ones are made twice: by a process that is called over a socket as the daemon is,
// which shows what is Katbox's own and is what is checked, and without any calls. "make measure WHAT=attach-bench" runs it.
func BenchmarkArrayStage(b *testing.B) {
	for _, kind := range []string{nfsVolume, diskVolume, blockVolume} {
		for _, count := range []int{1, 20} {
			b.Run(fmt.Sprintf("%s/volumes=%d", kind, count), func(b *testing.B) { compareCost(b, kind, count) })
		}
	}
}

func compareCost(b *testing.B, kind string, count int) {
	// A node has its records on a disk, on which to make them durable takes CPU too.
	b.Setenv("TMPDIR", os.Getenv("KATBOX_ARRAY_DIR"))
	cluster := newArrayCluster(b)
	a := newArrayDaemon(b, cluster.api.URL(), "--log-level", "info")
	a.program = os.Getenv("KATBOX_PROGRAM")
	a.start()
	// Another volume keeps the session, and the NFS client.
	other := cluster.attach(b, kind, "other-"+kind)
	a.bringUp(other)
	var volumes []attached
	for n := range count {
		v := cluster.attach(b, kind, fmt.Sprintf("volume-%s-%d", kind, n))
		// That makes the file system.
		a.bringUp(v)
		a.takeDown(v)
		volumes = append(volumes, v)
	}
	pid, served := startBare(b)
	called := *a
	called.arrayNode = served
	direct := &bare{dir: b.TempDir()}
	ours := costOf{pid: a.process.PID(), up: a.bringUp, down: a.takeDown}
	withCalls := costOf{pid: pid, up: called.bringUp, down: called.takeDown}
	withoutCalls := costOf{pid: os.Getpid(), up: func(v attached) {
		volume := a.volume(v.at, v.block)
		must(b, direct.stage(v.at, volume.Staging(), v.block))
		must(b, direct.publish(v.at.Volume, volume.Target()))
	}, down: func(v attached) {
		must(b, direct.unpublish(a.volume(v.at, v.block).Target()))
		must(b, direct.unstage(v.at.Volume))
	}}
	const atOnce = 20 // stages and publications in a turn
	for b.Loop() {
		for range max(1, atOnce/count) {
			for _, c := range []*costOf{&ours, &withCalls, &withoutCalls} {
				for _, v := range volumes {
					must(b, a.volume(v.at, v.block).MakeDirs()) // as the kubelet does
				}
				c.measure(b, volumes)
			}
		}
	}
	a.takeDown(other)
	each := time.Duration(b.N * max(count, atOnce))
	ratio := float64(ours.cpu) / float64(withCalls.cpu)
	bareRatio := float64(ours.cpu) / float64(withoutCalls.cpu)
	b.ReportMetric(ratio, "times-the-bare-CPU")
	b.ReportMetric(bareRatio, "times-the-bare-CPU-without-calls")
	b.ReportMetric(0, "ns/op")
	b.Logf("%s, %d volumes: stage and publish take %s, %.2f times the CPU of the bare ones: %s; %.2f times that without the calls: %s",
		kind, count, ours.cpu/each, ratio, withCalls.cpu/each, bareRatio, withoutCalls.cpu/each)
	if ratio > mostCost {
		b.Errorf("%s: that is more than %.1f times", kind, mostCost)
	}
}

// costOf is a way to stage and publish volumes, and the CPU time that it has taken.
type costOf struct {
	pid      int
	up, down func(attached)
	cpu      time.Duration
}

// measure stages and publishes volumes, and takes them down again, which does not count.
func (c *costOf) measure(b *testing.B, volumes []attached) {
	b.Helper()
	began := cpuOf(b, c.pid)
	for _, v := range volumes {
		c.up(v)
	}
	c.cpu += cpuOf(b, c.pid) - began
	for _, v := range volumes {
		c.down(v)
	}
}

// cpuOf returns the CPU time of a process, in user mode and in the kernel, and of its children that have ended.
func cpuOf(b *testing.B, pid int) time.Duration {
	b.Helper()
	const wholeProcess = 2 // CPUCLOCK_SCHED; see clock_getcpuclockid(3)
	var own unix.Timespec
	must(b, unix.ClockGettime(int32(^pid<<3|wholeProcess), &own))
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	must(b, err)
	_, rest, _ := strings.Cut(string(content), ") ")
	var children int64
	for _, field := range strings.Fields(rest)[13:15] { // cutime, cstime
		var ticks int64
		_, err := fmt.Sscan(field, &ticks)
		must(b, err)
		children += ticks
	}
	return time.Duration(own.Nano()) + time.Duration(children)*10*time.Millisecond
}
