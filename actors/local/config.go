package local

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/node/attach"
	"github.com/katbox/katbox/internal/node/localdisk"
)

// Config is what a Node works with.
type Config struct {
	// Places are the directories that pools are in.
	Places []Place
	// Open opens the pool in a directory. It makes one in an empty directory, unless the place says which pool was
	// there before. volume.ErrUnavailable: its disk is away.
	Open    func(ctx context.Context, place Place) (localdisk.Dir, error)
	Machine Machine
	Metrics Metrics
	// Changed, where it is set, is called when a pool has appeared, or come back. It does not block.
	Changed func()
	// HostRoot is where the host's root directory is mounted; empty for nowhere. Mounts below it are copies of
	// others, which go with those.
	HostRoot string
	// Patience is how long a caller waits for what takes long; 0 means 10 seconds.
	Patience time.Duration
	// WatchInterval is how often the disks are looked at; 0 means 10 seconds.
	WatchInterval time.Duration
	// Threads is how many threads the process may have; 0 sets no limit.
	Threads int
	Log     logr.Logger
}

// Place is a directory that a pool is in.
type Place struct {
	// Class is the PoolClass that the pool is to be in.
	Class, Path string
	Backend     local.Backend
	// OnRootDisk: a new pool may be on the node's own disk.
	OnRootDisk bool
	// UUID is that of the pool that was there before; empty for none.
	UUID string
}

// Machine is what is done with mounts whatever pool they are of, also while its disk is away.
type Machine interface {
	// Table reads the mount table. It asks no file system.
	Table() ([]attach.Mount, error)
	// NameOf returns the volume that a mount is of, if it is of any. It asks no file system of a pool.
	NameOf(m attach.Mount) (name string, ok bool)
	// Lost reports whether a mount shows a disk of a volume that was taken away under it. Nothing tells which volume that
	// was, and nothing can be read or written there. It asks no file system.
	Lost(m attach.Mount) bool
	// Unstage takes a volume away from the path at which it is staged, and its disk away once that is mounted nowhere.
	Unstage(ctx context.Context, name, path string) error
	// Bind binds what is mounted at source on target, which it makes. That the same is there already is no error;
	// [volume.ErrConflict] if it is there with other flags, [attach.ErrNotOurs] if something else is.
	Bind(source, target string, options []string, readOnly bool) error
	// Unmount takes all mounts at target away; that there is none is no error.
	Unmount(target string) error
	// Remove removes an empty directory or an empty file; that there is none is no error.
	Remove(target string) error
	// MakeDir makes a directory; that there is one is no error.
	MakeDir(path string) error
}

// Metrics count what happens to the volumes of pools on the node.
type Metrics interface {
	actors.Metrics
	// LocalPool says how a pool is; up is false while its disk is away.
	LocalPool(p local.Pool, counts local.Counts, up bool)
	// LocalOperation has ended.
	LocalOperation(name string, took time.Duration, err error)
}

// Defaults of Config.
const (
	defaultPatience      = 10 * time.Second
	defaultWatchInterval = 10 * time.Second
)

// complete sets what has a default, and names the first field that is missing.
func (c *Config) complete() error {
	for _, field := range []struct {
		name string
		ok   bool
	}{
		{"Places", len(c.Places) > 0}, {"Open", c.Open != nil}, {"Machine", c.Machine != nil}, {"Metrics", c.Metrics != nil},
	} {
		if !field.ok {
			return fmt.Errorf("local: Config.%s is missing", field.name)
		}
	}
	seen := map[string]bool{}
	for _, p := range c.Places {
		if p.Class == "" || p.Path == "" {
			return errors.New("local: a place needs a class and a path")
		}
		if seen[p.Path] {
			return fmt.Errorf("local: the directory %s is given twice", p.Path)
		}
		seen[p.Path] = true
	}
	if c.Patience == 0 {
		c.Patience = defaultPatience
	}
	if c.WatchInterval == 0 {
		c.WatchInterval = defaultWatchInterval
	}
	return nil
}
