package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/attach/attachtest"
)

// mostCost is how many times the CPU of the bare system calls and commands a stage and a publish may take.
const mostCost = 1.5

// BenchmarkArrayStage compares the CPU that the daemon takes for stage and publish of a ready volume with
// that of the bare system calls and commands that it needs, in turns in one run. "make attach-bench" runs it.
func BenchmarkArrayStage(b *testing.B) {
	for _, kind := range []string{nfsVolume, diskVolume} {
		b.Run(kind, func(b *testing.B) { compareCost(b, kind) })
	}
}

func compareCost(b *testing.B, kind string) {
	cluster := newArrayCluster(b)
	a := newArrayDaemon(b, cluster.api.URL(), "--log-level", "info")
	a.program = os.Getenv("KATBOX_PROGRAM")
	a.start()
	// There is a session already, and a file system.
	other, v := cluster.attach(b, kind, "other-"+kind), cluster.attach(b, kind, "volume-"+kind)
	a.bringUp(other)
	a.bringUp(v)
	a.takeDown(v)
	rounds := map[string]int{nfsVolume: 20, diskVolume: 5}[kind]
	var ours, bare time.Duration
	for b.Loop() {
		for range rounds {
			began := cpuOf(b, a.cmd.Process.Pid)
			a.bringUp(v)
			ours += cpuOf(b, a.cmd.Process.Pid) - began
			a.takeDown(v)
		}
		for range rounds {
			staging, target := a.pathsOf(v.at.Volume, false)
			began := cpuOf(b, os.Getpid())
			undo := bringUpBare(b, v, staging, target)
			bare += cpuOf(b, os.Getpid()) - began
			undo()
		}
	}
	a.takeDown(other)
	ratio := float64(ours) / float64(bare)
	b.ReportMetric(ratio, "times-the-bare-CPU")
	b.ReportMetric(0, "ns/op")
	b.Logf("%s: stage and publish take %.2f times the CPU of the bare calls: %s against %s", kind, ratio, ours, bare)
	if ratio > mostCost {
		b.Errorf("%s: that is more than %.1f times", kind, mostCost)
	}
}

// cpuOf returns the CPU time of a process and of its children that have ended.
func cpuOf(b *testing.B, pid int) time.Duration {
	b.Helper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	must(b, err)
	_, rest, _ := strings.Cut(string(content), ") ")
	var sum int64
	for _, field := range strings.Fields(rest)[11:15] { // utime, stime, cutime, cstime
		var ticks int64
		_, err := fmt.Sscan(field, &ticks)
		must(b, err)
		sum += ticks
	}
	return time.Duration(sum) * 10 * time.Millisecond
}

// bringUpBare does what a stage and a publish do, and nothing else. It returns what undoes it.
func bringUpBare(b *testing.B, v attached, staging, target string) (undo func()) {
	b.Helper()
	remove := func() {}
	if v.at.Export != "" {
		server, _, _ := strings.Cut(v.at.Export, ":")
		must(b, unix.Mount(v.at.Export, staging, "nfs4", 0, "vers=4.2,addr="+server+",clientaddr="+attachtest.NodeAddress(b)))
	} else {
		hosts, err := filepath.Glob("/sys/class/iscsi_host/host*")
		if err != nil || len(hosts) != 1 {
			b.Fatalf("hosts %q, %v, want one", hosts, err)
		}
		host := filepath.Base(hosts[0])
		must(b, os.WriteFile("/sys/class/scsi_host/"+host+"/scan", fmt.Appendf(nil, "0 0 %d", v.at.LUN), 0))
		disk := fmt.Sprintf("/sys/class/scsi_disk/%s:0:0:%d/device", strings.TrimPrefix(host, "host"), v.at.LUN)
		var names []string
		for len(names) == 0 {
			names, err = filepath.Glob(disk + "/block/*")
			must(b, err)
		}
		dev := "/dev/" + filepath.Base(names[0])
		_, err = os.ReadFile(disk + "/vpd_pg80")
		must(b, err)
		for _, command := range [][]string{{"blkid", "-p", "-o", "export", dev}, {"fsck.ext4", "-a", dev}} {
			if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
				b.Fatalf("%q: %v: %s", command, err, out)
			}
		}
		must(b, unix.Mount(dev, staging, "ext4", 0, ""))
		remove = func() { must(b, os.WriteFile(disk+"/delete", []byte("1"), 0)) }
	}
	must(b, os.Mkdir(target, 0o750))
	must(b, unix.Mount(staging, target, "", unix.MS_BIND, ""))
	return func() {
		must(b, unix.Unmount(target, 0))
		must(b, os.Remove(target))
		must(b, unix.Unmount(staging, 0))
		remove()
	}
}
