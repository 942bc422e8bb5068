package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// mostCost is how many times the CPU of the bare system calls and commands a stage and a publish may take.
const mostCost = 1.5

// BenchmarkArrayStage compares the CPU that the daemon takes for stage and publish of ready volumes, the calls
// over its socket included, with that of the bare system calls and commands that these need, in turns in one run:
// for one volume again and again, and for twenty in a row. "make attach-bench" runs it.
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
	bare := newBare(b, a)
	const atOnce = 20 // stages and publications in a turn
	var ours, theirs time.Duration
	for b.Loop() {
		for range max(1, atOnce/count) {
			began := cpuOf(b, a.cmd.Process.Pid)
			for _, v := range volumes {
				a.bringUp(v)
			}
			ours += cpuOf(b, a.cmd.Process.Pid) - began
			for _, v := range volumes {
				a.takeDown(v)
				a.makePathsOf(v.at.Volume, v.block) // the kubelet makes them
			}
			began = cpuOf(b, os.Getpid())
			for _, v := range volumes {
				bare.bringUp(v)
			}
			theirs += cpuOf(b, os.Getpid()) - began
			bare.undo()
		}
	}
	a.takeDown(other)
	each := time.Duration(b.N * max(count, atOnce))
	ratio := float64(ours) / float64(theirs)
	b.ReportMetric(ratio, "times-the-bare-CPU")
	b.ReportMetric(0, "ns/op")
	b.Logf("%s, %d volumes: stage and publish take %.2f times the CPU of the bare calls: %s against %s", kind, count, ratio,
		ours/each, theirs/each)
	if ratio > mostCost {
		b.Errorf("%s: that is more than %.1f times", kind, mostCost)
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

// wantSerial checks who a disk says that it is, as it has to be done before each use of it.
func wantSerial(b *testing.B, disk, serial string) {
	b.Helper()
	page, err := os.ReadFile(filepath.Join(disk, "vpd_pg80"))
	must(b, err)
	if !strings.Contains(string(page), serial) {
		b.Fatalf("%s has the serial number %q, want %q", disk, page, serial)
	}
}
