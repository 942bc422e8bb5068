package check

import (
	"errors"
	"fmt"
	"time"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/workload"
	"github.com/katbox/katbox/soak/story"
)

// defaultPatience is far above what a call takes on a healthy node, and far
// below what the kubelet waits for.
const defaultPatience = 10 * time.Second

// Space is what a file system has. A total of 0 says that there is no limit.
type Space struct {
	TotalBytes, FreeBytes   uint64
	TotalInodes, FreeInodes uint64
}

// Config is what a Checker works with. All fields are required, but Headroom, Reaction,
// Lifespan, ReleaseGrace, Outcomes, Tombstones, Patience, EnoughCalls, MaxPinned and MaxPerOwner may be zero.
type Config struct {
	// Work is the driver's working directory, Kubelet the kubelet's.
	Work    string
	Kubelet string
	// Lifespan, OrphanGrace, PruneInterval and Headroom are as the driver was
	// told them.
	Lifespan      time.Duration
	OrphanGrace   time.Duration
	PruneInterval time.Duration
	Headroom      float64
	// Reaction is how far ahead the driver expects pods to write on as they do, with a margin: that raises its
	// floor. 0 is not at all.
	Reaction time.Duration
	// ReleaseGrace is how long the driver keeps what a person releases.
	ReleaseGrace time.Duration
	// MaxPinned is which share of the disk volumes may take that are pinned or attached; 0 is not known.
	// Then Taken is not needed, which measures a directory.
	MaxPinned float64
	Taken     func(dir string) int64
	// MaxPerOwner is of how many pods of an owner the driver keeps the volumes.
	MaxPerOwner workload.PerOwner
	// Outcomes says that the driver is told how pods end.
	Outcomes bool
	// Tombstones says that CheckGone will be called.
	Tombstones bool
	// Tolerance is how late the driver may delete.
	Tolerance time.Duration
	// Patience is how long a call may take while nothing is wrong with its
	// volume and with the node; 0 stands for 10 s.
	Patience time.Duration
	// EnoughCalls is how many calls a part of the run needs for its cost to be
	// compared; 0 stands for 2000. Fewer tell nothing of a driver whose CPU time
	// is measured, and not made up.
	EnoughCalls int

	Timeline *history.Timeline
	Findings *history.Findings

	// Disk measures the file system of the working directory.
	Disk func() (Space, error)
	// Mounted reports whether path is a mount point. That there is no such path
	// may be an error that wraps fs.ErrNotExist.
	Mounted func(path string) (bool, error)
	// MountsBelow lists the mount points below a directory, but not itself.
	MountsBelow func(dir string) ([]string, error)
	// Canaries says what changed outside of the volumes; nil is nothing.
	Canaries func() error
	// Look looks at a volume's data in a directory: its target or its data directory. It finds them Whole, Partial
	// or Gone; the error says what was found if they are not whole.
	Look func(v *history.Volume, dir string) (story.Verb, error)
}

// lifespan is how long a volume is kept.
func (c Config) lifespan(v *history.Volume) time.Duration {
	if v != nil && v.Lifespan > 0 {
		return v.Lifespan
	}
	return c.Lifespan
}

// check names the first field that is missing.
func (c Config) check() error {
	var missing string
	switch {
	case c.Work == "":
		missing = "Work"
	case c.Kubelet == "":
		missing = "Kubelet"
	case c.Timeline == nil:
		missing = "Timeline"
	case c.Findings == nil:
		missing = "Findings"
	case c.Disk == nil:
		missing = "Disk"
	case c.Mounted == nil:
		missing = "Mounted"
	case c.MountsBelow == nil:
		missing = "MountsBelow"
	case c.Canaries == nil:
		missing = "Canaries"
	case c.Look == nil:
		missing = "Look"
	case c.MaxPinned > 0 && c.Taken == nil:
		missing = "Taken"
	case c.PruneInterval <= 0, c.OrphanGrace <= 0, c.Tolerance <= 0:
		return errors.New("check: Config.PruneInterval, OrphanGrace and Tolerance have to be longer than 0")
	default:
		return nil
	}
	return fmt.Errorf("check: Config.%s is missing", missing)
}
