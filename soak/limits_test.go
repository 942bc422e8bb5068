package main

import (
	"os"
	"testing"
	"time"

	"github.com/katbox/katbox/soak/internal/fakedriver"
	"github.com/katbox/katbox/soak/internal/report"
	"github.com/katbox/katbox/soak/internal/workload"
)

// TestLimitsAreTried: pods write until they are refused. Drivers that set no limits or others are found out, and one
// that sets them as asked is not. It needs a kernel with project quotas.
func TestLimitsAreTried(t *testing.T) {
	if os.Getenv("KATBOX_QUOTAS") == "" {
		t.Skip("this machine lacks project quotas: run it with make guest SUITE=quota")
	}
	play := func(t *testing.T, bug fakedriver.Bug, w workload.Workload) *report.Result {
		r := newRig(t, w, func(c *fakedriver.Config) { c.Bug = bug })
		r.options.tolerance = time.Minute // an emulated machine deletes late
		return r.play(t)
	}
	for _, kind := range []string{"xfs", "ext4"} {
		w := trial()
		waves(&w)
		w.Disk = workload.Disk{Kind: kind, Size: 1 << 30, Quotas: true}
		w.Volumes.Tight, w.Volumes.ReadOnly, w.Again = 0.5, 0.1, 0.2
		w.Calls = workload.Calls{Doubled: 0.3, Cancelled: 0.1, Reordered: 0.1}
		w.Contents = workload.Contents{Files: 8, Bytes: 200 << 10, Deep: 0.2, Names: 0.5, Sparse: 0.5, Links: 0.5, Modes: 0.5, Special: 0.5}
		w.Faults = []workload.Fault{fault(workload.DaemonKill, 2, 50*time.Millisecond)}
		for _, bug := range []fakedriver.Bug{fakedriver.LimitsNothing, fakedriver.LimitsTooMuch} {
			t.Run(string(bug)+" on "+kind, func(t *testing.T) {
				_, problems := playUntil(t, byChance, func() *report.Result { return play(t, bug, w) },
					func(r *report.Result) []string { return caught(r, bug) })
				for _, p := range problems {
					t.Error(p)
				}
			})
		}
		t.Run("honest ones on "+kind, func(t *testing.T) {
			_, problems := playUntil(t, isBusy, func() *report.Result { return play(t, "", w) },
				func(r *report.Result) []string {
					problems := violations(r)
					if r.Summary.Overfilled == 0 {
						problems = append(problems, "no volume was filled to its limit")
					}
					return problems
				})
			for _, p := range problems {
				t.Error(p)
			}
		})
	}
}
