package check

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/katbox/katbox/soak/internal/history"
)

// TestHoarded: pods may attach a hundredth of a disk, in which each volume takes three quarters of that.
func TestHoarded(t *testing.T) {
	attach := func(w *world, number int, code codes.Code) *history.Volume {
		source, by := w.retain(number), w.volume(100+number)
		by.Data, by.Attaches = "", source
		if w.checker.BeginAttachment(source, by) == nil {
			w.t.Fatal("it cannot be attached")
		}
		w.call(by, history.Publish, 10*time.Millisecond, code, func() { w.mounts[by.Target] = true })
		return by
	}
	tell(t, func(c *Config) {
		c.ReleaseGrace = time.Second
		c.MaxPinned = 0.01
		s, err := c.Disk()
		if err != nil {
			t.Fatal(err)
		}
		c.Taken = func(string) int64 { return int64(0.0075 * float64(s.TotalBytes)) }
	}, []played{
		// The first may not have been measured.
		{"two", func(w *world) {
			attach(w, 1, codes.OK)
			attach(w, 2, codes.OK)
		}, ""},
		{"three, and one ends before", func(w *world) {
			attach(w, 1, codes.OK)
			by := attach(w, 2, codes.OK)
			w.call(by, history.Unpublish, 10*time.Millisecond, codes.OK, func() { delete(w.mounts, by.Target) })
			attach(w, 3, codes.OK)
		}, ""},
		{"too many", func(w *world) {
			for number := 1; number <= 4; number++ {
				attach(w, number, codes.OK)
			}
		}, history.Attached},
		{"refused for that", func(w *world) {
			attach(w, 1, codes.OK)
			attach(w, 2, codes.ResourceExhausted)
		}, ""},
	})
	tell(t, func(c *Config) {
		c.ReleaseGrace = time.Second
		c.MaxPinned, c.Taken = 0.5, func(string) int64 { return 1 }
	}, []played{
		{"refused for nothing", func(w *world) { attach(w, 1, codes.ResourceExhausted) }, history.AnyOrder},
	})
}
