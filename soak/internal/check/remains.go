package check

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/pause"
)

// trashName is where the driver puts data that it is about to erase.
const trashName = ".trash"

// lostAndFound is made by mkfs.ext4.
const lostAndFound = "lost+found"

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

// remains lists what there should not be in a working directory once all
// volumes are over: directories of pods, and trash. The driver's records and its
// other hidden directories may stay, and so may the excused data directories.
func remains(work string, excused map[string]bool) ([]string, error) {
	entries, err := os.ReadDir(work)
	if err != nil {
		return nil, fmt.Errorf("working directory: %w", err)
	}
	pods := make(map[string]bool)
	for data := range excused {
		pods[filepath.Dir(data)] = true
	}
	var found []string
	for _, entry := range entries {
		name := entry.Name()
		if !entry.IsDir() || strings.HasPrefix(name, ".") && name != trashName || name == lostAndFound {
			continue
		}
		dir := filepath.Join(work, name)
		inside, err := os.ReadDir(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue // erased meanwhile
		case err != nil:
			return nil, fmt.Errorf("working directory: %w", err)
		case name != trashName && len(inside) == 0 && !pods[dir]:
			found = append(found, name+"/")
		}
		for _, e := range inside {
			if !excused[filepath.Join(dir, e.Name())] {
				found = append(found, filepath.Join(name, e.Name()))
			}
		}
	}
	return found, nil
}

// awaitEmpty waits until the working directory has no remains, and reports them
// if there are some at the given time.
func (c *Checker) awaitEmpty(ctx context.Context, until time.Time) error {
	for {
		before := time.Now()
		c.mu.Lock()
		found, err := remains(c.cfg.Work, c.excused)
		c.mu.Unlock()
		if err != nil || len(found) == 0 {
			return err
		}
		if before.After(until) {
			c.cfg.Findings.Add(history.NoLeak, nil, fmt.Sprintf(
				"all volumes are over since %s, but the working directory still has %s",
				until.Add(-c.cfg.Tolerance).Format(history.Clock), some(found)))
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
