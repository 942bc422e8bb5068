package check

import (
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/workload"
	"github.com/katbox/katbox/soak/story"
)

// publishedLooks is how many published volumes are looked at in a second at
// most, each through its target and in its data directory.
const publishedLooks = 200

// published is a volume whose data has to be there.
type published struct {
	volume *history.Volume
	// looking is held during a look: a look has the target open, and whoever
	// unmounts it has to wait for that.
	looking sync.Mutex
	// lastGood is when it was last found right.
	lastGood time.Time
	// stacked says that it was reported as mounted more than once.
	stacked bool
}

// Published says that a volume's content is in place: from now on until Ending
// it has to be there.
func (c *Checker) Published(v *history.Volume) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := &published{volume: v, lastGood: time.Now()}
	c.byVolume[v] = p
	c.published.add(p)
}

// Ending looks at a volume for the last time. It is called before the first
// unpublish is sent, and before whatever else ends the volume's use.
func (c *Checker) Ending(v *history.Volume) {
	c.mu.Lock()
	p, ok := c.byVolume[v]
	c.mu.Unlock()
	if !ok {
		return
	}
	c.lookAtPublished(p)
	c.forgetPublished(p)
	// One that is under way is the last.
	p.looking.Lock()
	defer p.looking.Unlock()
}

// DaemonReady says that the driver is back: all that was published before is to
// be mounted still.
func (c *Checker) DaemonReady() {
	c.mu.Lock()
	all := c.published.next(len(c.published.all))
	c.mu.Unlock()
	for _, p := range all {
		c.lookAtPublished(p)
	}
}

// lookAtSomePublished looks at the next ones in turn.
func (c *Checker) lookAtSomePublished(n int) {
	c.mu.Lock()
	turn := c.published.next(n)
	c.mu.Unlock()
	for _, p := range turn {
		c.lookAtPublished(p)
	}
}

// forgetPublished reports whether the volume was still to be looked at.
func (c *Checker) forgetPublished(p *published) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byVolume[p.volume] == p {
		delete(c.byVolume, p.volume)
	}
	return c.published.remove(p)
}

func (c *Checker) lookAtPublished(p *published) {
	p.looking.Lock()
	defer p.looking.Unlock()
	c.mu.Lock()
	ended := c.byVolume[p.volume] != p
	c.mu.Unlock()
	if ended {
		return
	}
	v, before := p.volume, time.Now()
	s := c.told(append(calls(v), story.Event{At: before, What: story.Wrote, N: 1})...)
	mounted := c.see(s, v)
	c.mu.Lock()
	since := p.lastGood
	if s.Broken() == "" {
		p.lastGood = before
	}
	c.mu.Unlock()
	// A look that went on while the volume ended proves nothing, and what was
	// reported once is not reported again.
	if s.Broken() == "" || !c.forgetPublished(p) {
		return
	}
	now := time.Now()
	if v.Troubled(time.Time{}, now, workload.VolumeRemoved, workload.VolumeSymlink, workload.PodRemoved) {
		return
	}
	c.spoil(v)
	broken := history.PublishedData
	if !mounted && c.cfg.Timeline.During(since, now, workload.DaemonKill) {
		broken = history.Durable // it was published before the kill
	}
	c.cfg.Findings.Add(broken, v, fmt.Sprintf("it was whole at %s: %s", story.Clock(since), s.Broken()))
}

// spoil notes that the data of a volume was reported as lost while it was
// published: what becomes of the rest says nothing more.
func (c *Checker) spoil(v *history.Volume) {
	c.excuse(v)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spoilt[v] = true
}

// takeSpoilt reports whether a volume is spoilt, and forgets it.
func (c *Checker) takeSpoilt(v *history.Volume) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	spoilt := c.spoilt[v]
	delete(c.spoilt, v)
	return spoilt
}

// see tells the story of a published volume what its pod sees, which has to be its data directory. It reports whether
// anything is mounted.
func (c *Checker) see(s *story.Story, v *history.Volume) (mounted bool) {
	if mounted, err := c.tellMount(s, v); !mounted {
		c.fail(err)
		return false
	}
	from := time.Now()
	_, err := c.cfg.Look(v, v.Target)
	if err == nil && v.Data != "" {
		err = sameDirectory(v)
	}
	if err != nil {
		tellLook(s, from, story.Wrong, err)
	}
	return true
}

// sameDirectory says what else than the data directory the pod sees.
func sameDirectory(v *history.Volume) error {
	target, err := os.Stat(v.Target)
	if err != nil {
		return fmt.Errorf("target: %w", err)
	}
	data, err := os.Stat(v.Data)
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	if !os.SameFile(target, data) {
		return fmt.Errorf("%s shows another directory than %s", v.Target, v.Data)
	}
	return nil
}
