package iscsi

import (
	"context"
	"errors"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/node/attach"
	"github.com/katbox/katbox/internal/node/attach/host"
)

// Config says how to reach the host's initiator.
type Config struct {
	// Root is the host's root directory, in which iscsiadm runs and open-iscsi keeps its records;
	// empty for that of this process.
	Root string
	// Interface is the name of our interface in open-iscsi. What bears another name is not touched.
	Interface string
	// IQN returns this node's initiator name. Login alone asks for it.
	IQN func(context.Context) (string, error)
	// Sysfs and Proc are where these are mounted; empty for /sys and /proc.
	Sysfs, Proc string
	Log         logr.Logger
}

// Initiator is the iSCSI initiator of the node, as far as it is ours. Its methods may be called
// from any goroutine. Those that change something to a target wait for each other.
type Initiator struct {
	config     Config
	sysfs, dev string
	proc       string
	log        logr.Logger
	// run runs iscsiadm, and inquire asks a disk which one it is.
	run     func(ctx context.Context, args ...string) (string, error)
	inquire func(path string) (attach.Identity, error)
	// patience is how long a LUN may take to appear; pause is the time between two looks.
	patience, pause time.Duration
	now             func() time.Time

	// targets are locked for logins and logouts, and the SCSI hosts of sessions for what is done to
	// their disks and for the end of the session: work on the disks of a session that is down may hang,
	// and does not hold up those of another session to the target.
	targets keyed[string]
	hosts   keyed[int]

	mu sync.Mutex
	// down is since when sessions are down; seen has what was read of the others.
	down map[int]time.Time
	seen map[string]seen
	// refused is the name of the last disk that had the number of one that vanished under a pod.
	refused string

	locating sync.Mutex
	database string // the directory of open-iscsi's records, once it is known
}

var interfaceName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{0,40}$`)

// New returns an Initiator. It opens and runs nothing.
func New(c Config) (*Initiator, error) {
	switch {
	case !interfaceName.MatchString(c.Interface) || c.Interface == "default" || c.Interface == "iser":
		return nil, errors.New("iscsi: Config.Interface is not a name of small letters and digits of our own: " + c.Interface)
	case c.IQN == nil:
		return nil, errors.New("iscsi: Config.IQN is missing")
	}
	i := &Initiator{
		config: c, sysfs: c.Sysfs, dev: "/dev", proc: c.Proc, log: c.Log, inquire: inquire,
		patience: 10 * time.Second, pause: 100 * time.Millisecond, now: time.Now, down: make(map[int]time.Time), seen: make(map[string]seen),
	}
	if i.sysfs == "" {
		i.sysfs = "/sys"
	}
	if i.proc == "" {
		i.proc = "/proc"
	}
	i.run = func(ctx context.Context, args ...string) (string, error) {
		return host.Root(c.Root).Run(ctx, host.Program{Name: "iscsiadm", Args: args})
	}
	return i, nil
}

// class is a directory below /sys/class.
func (i *Initiator) class(names ...string) string {
	return filepath.Join(append([]string{i.sysfs, "class"}, names...)...)
}

// wait lets some time pass, and returns the error of ctx if that ends first.
func (i *Initiator) wait(ctx context.Context) error {
	if retry.Pause(ctx, i.pause) != nil {
		return context.Cause(ctx)
	}
	return nil
}

// keyed is a lock for each key.
type keyed[K comparable] struct {
	mu   sync.Mutex
	held map[K]chan struct{}
}

// tryLock takes the lock of a key if it is free.
func (k *keyed[K]) tryLock(key K) (unlock func(), ok bool) {
	unlock, _ = k.take(key)
	return unlock, unlock != nil
}

// lock waits for the lock of a key, and returns what gives it back.
func (k *keyed[K]) lock(ctx context.Context, key K) (unlock func(), err error) {
	for {
		unlock, other := k.take(key)
		if unlock != nil {
			return unlock, nil
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-other:
		}
	}
}

// take takes a lock, or returns what is closed when it is given back.
func (k *keyed[K]) take(key K) (unlock func(), other <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if other, held := k.held[key]; held {
		return nil, other
	}
	if k.held == nil {
		k.held = make(map[K]chan struct{})
	}
	free := make(chan struct{})
	k.held[key] = free
	return func() {
		k.mu.Lock()
		delete(k.held, key)
		k.mu.Unlock()
		close(free)
	}, nil
}
