package check

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/story"
)

const (
	// fewInVain is how many volumes may go early that make no room, before the driver knows that, and one part in
	// partInVain of those that are retained where that is more. From what is smaller than enoughInVain, all
	// together, it cannot tell. What frees one part in leastRoom makes room. stoppedFor is how long it may let none go then.
	fewInVain, partInVain = 6, 8
	enoughInVain          = 1 << 20
	leastRoom             = 16
	stoppedFor            = 3 * time.Minute
)

// vain are volumes whose files a process has open, with what they take, and the sum of those that are gone.
type vain struct {
	held map[*history.Volume]weight
	gone int
	sum  weight
}

// weight is what a volume takes in its regular files, which stay as long as they are open, and beside them: directories come free.
type weight struct{ files, rest int64 }

// weightOf returns what a data directory takes, with the pod's own; what cannot be looked at counts as nothing.
func weightOf(dir string) (w weight) {
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil {
			w.add(entry.Info())
		}
		return nil
	})
	w.add(os.Lstat(filepath.Dir(dir)))
	return w
}

func (w *weight) add(info fs.FileInfo, err error) {
	if err != nil {
		return
	}
	switch s, ok := info.Sys().(*syscall.Stat_t); {
	case !ok:
	case info.Mode().IsRegular():
		w.files += s.Blocks * 512 / int64(max(1, s.Nlink)) // each of its links is looked at
	default:
		w.rest += s.Blocks * 512
	}
}

// goes notes that a volume went early, of so many that are retained. It reports whether the driver should have known that it
// makes no room, and with how many.
func (v *vain) goes(w weight, retained int) (wrong bool, most int) {
	known := v.sum.files >= enoughInVain
	v.gone++
	v.sum.files += w.files
	v.sum.rest += w.rest
	most = max(fewInVain, max(len(v.held), retained)/partInVain)
	return known && v.gone > most && v.sum.rest*leastRoom < v.sum.files+v.sum.rest, most
}

// HoldFiles returns the volumes that are retained now. Until release is called their files are open elsewhere,
// so that to delete them makes no room.
func (c *Checker) HoldFiles() (held []*history.Volume, release func()) {
	c.mu.Lock()
	for _, r := range c.retained.all {
		held = append(held, r.volume)
	}
	c.mu.Unlock()
	now := &vain{held: map[*history.Volume]weight{}}
	for _, v := range held {
		now.held[v] = weightOf(v.Data)
	}
	c.mu.Lock()
	c.vain = now
	c.mu.Unlock()
	slices.SortFunc(held, func(a, b *history.Volume) int {
		return a.LastOK(history.Unpublish).Compare(b.LastOK(history.Unpublish))
	})
	return held, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.vain = nil
	}
}

// checkVain looks at a volume that went early.
func (c *Checker) checkVain(v *history.Volume, goneBy time.Time) {
	c.mu.Lock()
	if c.vain == nil || c.vain.held[v].files == 0 {
		c.mu.Unlock()
		return
	}
	wrong, most := c.vain.goes(c.vain.held[v], len(c.retained.all))
	gone := c.vain.gone
	c.mu.Unlock()
	if wrong {
		c.cfg.Findings.Add(history.MakesRoom, v, fmt.Sprintf(
			"evicted by %s as the %dth volume whose files a process has open, so that none of them made room; %d should be enough to know that",
			story.Clock(goneBy), gone, most))
	}
}
