package ephemeral

import (
	"context"
	"testing"
	"time"
	"unsafe"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/metrics"
)

// stepped is a time that was read before the wall clock was stepped: see TestClockFollowsSteps.
func stepped(t time.Time, by time.Duration) time.Time {
	*(*uint64)(unsafe.Pointer(&t)) += uint64(by/time.Second) << 30
	return t
}

// TestTimesAreToldByTheClockOfNow: the wall clock was set after volumes were retained. What people see of these is as
// far from now as it truly is: the ages, the ends, a pin, what a list begins with, and the sums.
func TestTimesAreToldByTheClockOfNow(t *testing.T) {
	for name, wrong := range map[string]time.Duration{
		"was late": -11 * time.Hour, "was early": 11 * time.Hour, "was never set": -50 * 365 * 24 * time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			h := newTestNode(t)
			for id, ago := range map[volume.ID]time.Duration{"csi-older": 2 * time.Hour, "csi-newer": time.Hour} {
				h.retained("pod", id, ago, testLifespan)
				h.change(id, func(r *volume.Record) { r.Unpublished = stepped(r.Unpublished, wrong) })
			}
			// The clock of a bubble has no monotonic reading.
			h.metrics = metrics.New("test", "")
			var err error
			if h.node, err = start(h.config()); err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := h.node.Stop(context.Background()); err != nil {
					t.Error(err)
				}
			}()
			near := func(what string, is, want time.Time) {
				t.Helper()
				if off := is.Round(0).Sub(want.Round(0)); off.Abs() > time.Minute {
					t.Errorf("%s is %v, which is off by %v", what, is, off)
				}
			}
			check := func(d volume.Description, err error, ago time.Duration) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
				near("retained", d.Record.Unpublished, time.Now().Add(-ago))
				near("the end", d.Deadline, time.Now().Add(-ago+testLifespan))
			}
			d, err := h.node.Describe(t.Context(), "csi-older")
			check(d, err, 2*time.Hour)
			reading, err := h.node.Read(t.Context(), "csi-older")
			if err != nil {
				t.Fatal(err)
			}
			check(reading.Volume, nil, 2*time.Hour)
			reading.Close()

			page, err := h.node.List(t.Context(), volume.Selection{Limit: 1})
			if err != nil || len(page.Volumes) != 1 || page.Volumes[0].Record.ID != "csi-newer" {
				t.Fatalf("the newest is %+v, %v", page.Volumes, err)
			}
			check(page.Volumes[0], nil, time.Hour)
			page, err = h.node.List(t.Context(), volume.Selection{Limit: 9, Before: page.Next})
			if err != nil || len(page.Volumes) != 1 || page.Volumes[0].Record.ID != "csi-older" {
				t.Fatalf("the list goes on with %+v, %v", page.Volumes, err)
			}
			page, err = h.node.List(t.Context(), volume.Selection{Limit: 9, Since: time.Now().Add(-90 * time.Minute)})
			if err != nil || len(page.Volumes) != 1 {
				t.Errorf("of the last 90 minutes are %+v, %v", page.Volumes, err)
			}

			until := time.Now().Add(30 * time.Hour)
			d, err = h.node.Pin(t.Context(), "csi-older", until, "ann", "a test")
			if err != nil {
				t.Fatal(err)
			}
			near("the end of the pin", d.Record.HeldUntil(), until)
			near("the end of what is pinned", d.Deadline, until)
			near("retained", d.Record.Unpublished, time.Now().Add(-2*time.Hour))

			h.publish()
			published, _ := h.node.Describe(t.Context(), testID)
			near("published", published.Record.Published, time.Now())

			sums, err := h.node.Holdings(t.Context())
			if err != nil || len(sums) != 1 || sums[0].Volumes != 2 {
				t.Fatalf("holds %+v, %v", sums, err)
			}
			near("the newest", sums[0].Newest, time.Now().Add(-time.Hour))
			near("the oldest", sums[0].Oldest, time.Now().Add(-2*time.Hour))
		})
	}
}
