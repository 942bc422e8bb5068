package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/quota"
)

// cpu returns the CPU time that the daemon has used.
func (d *daemon) cpu() time.Duration {
	d.t.Helper()
	var sum time.Duration
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", d.cmd.Process.Pid))
	if err != nil {
		d.t.Fatal(err)
	}
	for _, task := range tasks {
		var ran int64
		content, err := os.ReadFile(task)
		if err != nil {
			continue // the thread has ended
		}
		if _, err := fmt.Sscan(string(content), &ran); err != nil {
			d.t.Fatal(err)
		}
		sum += time.Duration(ran)
	}
	return sum
}

// TestQuotaCost measures the CPU of publishes with and without a limit, in turns, and of stats of a
// volume with very many files. It
// prints what it finds: how long it takes is up to the machine.
func TestQuotaCost(t *testing.T) {
	onQuotas(t, quota.Enforced, func(t *testing.T, n *limitedNode) {
		n.flags[1] = "1h"
		n.flags = append(n.flags, "--log-level", "info")
		n.start()
		const batch, rounds = 50, 10
		costs := map[string][]time.Duration{}
		next := 0
		for range rounds {
			for _, limit := range []string{"", "1Mi"} {
				began := n.cpu()
				for range batch {
					next++
					n.mustPublish(podNamed(next), volumeID(next), limit, 0)
				}
				costs[limit] = append(costs[limit], (n.cpu()-began)/batch)
			}
		}
		for _, all := range costs {
			slices.Sort(all)
		}
		without, with := costs[""][rounds/2], costs["1Mi"][rounds/2]
		t.Logf("CPU of a publish: %v without a limit, %v with one, %.3f times (medians of %d batches of %d)",
			without, with, float64(with)/float64(without), rounds, batch)

		files := 1_000_000
		var st unix.Statfs_t
		if err := unix.Statfs(n.workdir(), &st); err != nil {
			t.Fatal(err)
		}
		files = min(files, int(st.Ffree)*9/10)
		target := n.mustPublish(podNamed(0), volumeID(0), "", 0)
		unforked(func() {
			for i := range files {
				if i%10_000 == 0 {
					if err := os.Mkdir(fmt.Sprintf("%s/%d", target, i/10_000), 0o700); err != nil {
						t.Fatal(err)
					}
				}
				if err := unix.Mknod(fmt.Sprintf("%s/%d/%d", target, i/10_000, i), unix.S_IFREG|0o600, 0); err != nil {
					t.Fatal(err)
				}
			}
		})
		var took []time.Duration
		for range 100 {
			began := time.Now()
			if _, inodes := n.stats(podNamed(0), volumeID(0)); inodes.Used < int64(files) {
				t.Fatalf("%d files", inodes.Used)
			}
			took = append(took, time.Since(began))
		}
		slices.Sort(took)
		t.Logf("NodeGetVolumeStats of a volume with %d files: median %v, most %v", files, took[50], took[99])
	})
}
