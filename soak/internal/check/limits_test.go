package check

import (
	"errors"
	"testing"

	"github.com/katbox/katbox/soak/internal/history"
)

// TestLimits has pods that were refused at their limit, below it, and not at all, on disks with room
// and without.
func TestLimits(t *testing.T) {
	const total, limit, least = 1000, 100, 25
	for name, c := range map[string]struct {
		amounts []int64
		free    uint64
		within  error
		broken  int
	}{
		"at the limit":                     {[]int64{99, 60}, total, nil, 0},
		"with the least":                   {[]int64{25}, total, nil, 0},
		"never":                            {[]int64{100}, total, nil, 1},
		"far below it":                     {[]int64{24}, total, nil, 1},
		"one of both":                      {[]int64{80, 24}, total, nil, 1},
		"both":                             {[]int64{101, 0}, total, nil, 2},
		"far below it, on a full disk":     {[]int64{0}, total/10 - 1, nil, 0},
		"never, on a full disk":            {[]int64{100}, 0, nil, 1},
		"within its limit":                 {nil, total, errors.New("no room"), 1},
		"within its limit, on a full disk": {nil, total/10 - 1, errors.New("no room"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := inWorld(t, nil, func(w *world) {
				w.free(c.free)
				v := &history.Volume{ID: "csi-1"}
				for _, amount := range c.amounts {
					w.checker.Overfilled(v, Taken{What: "bytes", Amount: amount, Limit: limit, Least: least})
				}
				if c.within != nil {
					w.checker.RefusedWithinLimit(v, c.within)
				}
			})
			promise := history.Limits
			if c.broken == 0 {
				promise = ""
			}
			w.want(promise, c.broken)
		})
	}
}
