package check

import (
	"fmt"

	"github.com/katbox/katbox/soak/internal/history"
)

// lookAtStacks reports published volumes that are mounted more than once at their targets. A driver
// that mounts again when a publish is repeated unmounts all of it in the end, and nothing else shows it.
func (c *Checker) lookAtStacks() {
	c.mu.Lock()
	byTarget := make(map[string]*published, len(c.byVolume))
	for _, p := range c.byVolume {
		// What a call does meanwhile is not to be judged.
		if !p.stacked && p.volume.Quiet() {
			byTarget[p.volume.Target] = p
		}
	}
	c.mu.Unlock()
	if len(byTarget) == 0 {
		return
	}
	points, err := c.cfg.MountsBelow(c.cfg.Kubelet)
	if err != nil {
		c.fail(fmt.Errorf("mounts below %s: %w", c.cfg.Kubelet, err))
		return
	}
	times := make(map[string]int)
	for _, point := range points {
		times[point]++
	}
	for target, p := range byTarget {
		n := times[target]
		if n < 2 || !p.volume.Quiet() {
			continue
		}
		c.mu.Lock()
		p.stacked = true // once is enough
		c.mu.Unlock()
		c.cfg.Findings.Add(history.AnyOrder, p.volume, fmt.Sprintf("%d mounts are stacked at %s, and no call for it is running", n, target))
	}
}
