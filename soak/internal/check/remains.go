package check

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/host"
	"github.com/katbox/katbox/soak/internal/pause"
	"github.com/katbox/katbox/soak/story"
)

// excuse lets the remains of a volume be: they are not the driver's doing, or
// were reported already.
func (c *Checker) excuse(v *history.Volume) {
	if v.Data == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.excused[filepath.Clean(v.Data)] = true
}

// awaitEmpty waits until the working directory has no remains, and reports them
// if there are some at the given time.
func (c *Checker) awaitEmpty(ctx context.Context, until time.Time) error {
	for {
		before := time.Now()
		c.mu.Lock()
		found, err := host.Remains(c.cfg.Work, c.excused)
		c.mu.Unlock()
		if err != nil || len(found) == 0 {
			return err
		}
		if before.After(until) {
			c.cfg.Findings.Add(history.NoLeak, nil, fmt.Sprintf(
				"all volumes are over since %s, but the working directory still has %s",
				story.Clock(until.Add(-c.cfg.Tolerance)), some(found)))
			return nil
		}
		if err := pause.For(ctx, dueInterval); err != nil {
			return err
		}
	}
}

// checkMounts reports mounts below the two directories.
func (c *Checker) checkMounts() error {
	for _, dir := range []string{c.cfg.Work, c.cfg.Kubelet} {
		mounts, err := c.cfg.MountsBelow(dir)
		if err != nil {
			return fmt.Errorf("mounts below %s: %w", dir, err)
		}
		if len(mounts) > 0 {
			c.cfg.Findings.Add(history.NoLeak, nil, "all volumes are over, but there are still mounts: "+some(mounts))
		}
	}
	return nil
}

// some is the number of the things and the first of them.
func some(things []string) string {
	const most = 5
	text := fmt.Sprintf("%d: %s", len(things), strings.Join(things[:min(most, len(things))], ", "))
	if len(things) > most {
		text += ", ..."
	}
	return text
}
