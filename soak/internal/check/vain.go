package check

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/story"
)

const (
	// fewInVain is how many volumes may go early that make no room, before the driver knows that, and one part in
	// partInVain of those that are retained where that is more. From what is smaller than enoughInVain, all
	// together, it cannot tell. stoppedFor is how long it may let none go then.
	fewInVain, partInVain = 6, 8
	enoughInVain          = 1 << 20
	stoppedFor            = 3 * time.Minute
)

// vain are volumes whose files a process has open, with their sizes.
type vain struct {
	held  map[*history.Volume]int64
	gone  int
	bytes int64
}

// sizeOf is how many bytes the files in a directory have; what cannot be looked at counts as nothing.
func sizeOf(dir string) (bytes int64) {
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return nil
		}
		if info, err := entry.Info(); err == nil {
			bytes += info.Size()
		}
		return nil
	})
	return bytes
}

// HoldFiles returns the volumes that are retained now. Until release is called their files are open elsewhere,
// so that to delete them makes no room.
func (c *Checker) HoldFiles() (held []*history.Volume, release func()) {
	c.mu.Lock()
	for _, r := range c.retained.all {
		held = append(held, r.volume)
	}
	c.mu.Unlock()
	now := &vain{held: map[*history.Volume]int64{}}
	for _, v := range held {
		now.held[v] = sizeOf(v.Data)
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
	vain := c.vain
	if vain == nil || vain.held[v] == 0 {
		c.mu.Unlock()
		return
	}
	known := vain.bytes >= enoughInVain
	vain.gone++
	vain.bytes += vain.held[v]
	gone, most := vain.gone, max(fewInVain, len(vain.held)/partInVain)
	c.mu.Unlock()
	if known && gone > most {
		c.cfg.Findings.Add(history.MakesRoom, v, fmt.Sprintf(
			"evicted by %s as the %dth volume whose files a process has open, so that none of them made room; %d should be enough to know that",
			story.Clock(goneBy), gone, most))
	}
}
