package quota

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/metrics"
)

// Mode says what to do with limits.
type Mode string

const (
	// Auto limits what the file system can limit.
	Auto Mode = "auto"
	// Off gives new volumes no project. Those that have one keep it.
	Off Mode = "off"
	// Required refuses a volume whose limit cannot be enforced.
	Required Mode = "required"
)

// ParseMode reads auto, off or required.
func ParseMode(text string) (Mode, error) {
	switch m := Mode(text); m {
	case Auto, Off, Required:
		return m, nil
	}
	return "", fmt.Errorf("%q is not auto, off or required", text)
}

var (
	// ErrNotEnforced: the limit of a volume would not be enforced.
	ErrNotEnforced = errors.New("its limit cannot be enforced")
	errNoID        = errors.New("no project ID is free; enlarge --project-ids")
)

// Kernel is what [Projects] needs of a [FileSystem].
type Kernel interface {
	State() (State, error)
	Inside() uint32
	Enforce() (already bool, err error)
	Project(fd int) (uint32, error)
	SetProject(fd int, id uint32) error
	SetLimit(id uint32, limit volume.Size) error
	Read(id uint32) (Quota, error)
	From(id uint32) iter.Seq2[Quota, error]
}

// Config is what Projects work with.
type Config struct {
	Kernel Kernel
	Mode   Mode
	// IDs are those that volumes may get, except Reserved.
	IDs      Range
	Reserved []uint32
	// Draw returns any number below n, by which an ID is chosen; nil for one that cannot be guessed.
	Draw    func(n uint32) uint32
	Metrics *metrics.Metrics
	// LimitChanged is called for each limit that another program has changed; nil for nothing.
	LimitChanged func()
	Log          logr.Logger
}

// Projects gives volumes projects, and finds out when an ID is free again. An ID is taken while a
// record has it, while data in the trash may have it, and until the kernel counts nothing for it.
// The methods may be called from several goroutines. A nil *Projects gives none.
type Projects struct {
	Config
	state State
	// why is why new volumes get no limit; nil if they do.
	why error
	// gives: new volumes get projects.
	gives bool

	mu sync.Mutex
	// ids, and all sets, count from IDs.First on.
	ids ids
	// recorded are those that a record has, shared how many more records have an ID. trashed are
	// those of data in the trash.
	recorded, trashed set
	shared            map[uint32]int
	waiting           waiting
	// setting are those whose limit is being set again: none of them becomes free meanwhile.
	setting map[uint32]bool
	// strays are those whose volumes have files of another project.
	strays map[uint32]bool
	// toldUnset: the log has a line about a limit that cannot be set again.
	toldUnset bool
	// off: another program has turned quotas off, and they cannot be turned on again.
	off atomic.Bool
}

// New returns the Projects of a file system. Call [Projects.Known] for each record before the first
// Take, and [Projects.Close] at the end.
func New(cfg Config) *Projects {
	p := &Projects{Config: cfg, shared: map[uint32]int{}, setting: map[uint32]bool{}, strays: map[uint32]bool{}}
	if p.Draw == nil {
		p.Draw = rand.Uint32N
	}
	p.ids.size, p.ids.draw = cfg.IDs.Size, p.Draw
	var reason error
	p.state, reason = cfg.Kernel.State()
	inside := cfg.Kernel.Inside()
	switch {
	case cfg.Mode == Off:
		p.why = errors.New("--quota is off")
	case reason != nil:
		p.why = reason
	case inside != 0 && cfg.Mode != Required:
		p.why = fmt.Errorf("the working directory is in project %d, which would not count a volume with a project of its own", inside)
	default:
		p.gives = true
		if p.state != Enforced {
			p.why = errors.New("the file system counts what projects use, and enforces no limit")
		}
	}
	for _, id := range cfg.Reserved {
		if cfg.IDs.has(id) {
			p.ids.add(id - cfg.IDs.First)
		}
	}
	cfg.Metrics.QuotaIs(p.state.String())
	cause := "it enforces limits"
	if p.why != nil {
		cause = p.why.Error()
	}
	cfg.Log.Info("project quotas of the file system", "state", p.state.String(), "givesProjects", p.gives,
		logkeys.Cause, cause)
	return p
}

// Counts reports whether the kernel counts what projects use.
func (p *Projects) Counts() bool { return p != nil && p.state != None }

// Gives reports whether Take is to be asked for a project for a new volume with that limit: it gives
// one, or has something to say about the limit.
func (p *Projects) Gives(limit volume.Size) bool {
	return p != nil && (p.gives || limit != volume.Size{})
}

// Enforces reports whether the kernel enforces the limit of a volume with that project.
func (p *Projects) Enforces(id uint32) bool {
	if p == nil || id == 0 || p.state != Enforced || p.off.Load() {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.strays[id-p.IDs.First]
}

// Has reports whether an open data directory has the project of its record. It has not in a copy of a working directory, or
// where root of a pod has taken it out. If it cannot be found out, the answer is yes.
func (p *Projects) Has(fd int, id uint32) bool {
	has, err := p.Kernel.Project(fd)
	return err != nil || has == id
}

// Stray notes whether the files of a volume have another project than its record says. about are further words of the log
// about the volume.
func (p *Projects) Stray(id uint32, is bool, about ...any) {
	n := id - p.IDs.First
	p.mu.Lock()
	was := p.strays[n]
	tell := is && !was && len(p.strays) == 0
	switch {
	case is == was, !p.recorded.has(n):
		p.mu.Unlock()
		return
	case is:
		p.strays[n] = true
	default:
		delete(p.strays, n)
	}
	p.mu.Unlock()
	p.count()
	if tell {
		p.Log.Info("the files of a volume do not have the project of its record, as in a copy or after a restore: until it is published "+
			"again it is measured by a walk, and its limit does not hold; further ones are only counted", append([]any{"project", id}, about...)...)
	}
}

// Take returns the ID of a project for a new volume with that limit; 0 if the volume gets none. The
// error is an [ErrNotEnforced]; only [Required] has one. about are further words of the log about the volume.
func (p *Projects) Take(limit volume.Size, about ...any) (uint32, error) {
	if p == nil {
		return 0, nil
	}
	id, err := p.take()
	if err == nil {
		err = p.why
	}
	if err = p.NotEnforced(limit, err, about...); err != nil && id != 0 {
		p.Forgotten(id)
		id = 0
	}
	return id, err
}

// NotEnforced is about a limit that is not enforced because of an error. Whether that is an error
// of the volume is up to the mode.
func (p *Projects) NotEnforced(limit volume.Size, cause error, about ...any) error {
	switch {
	case cause == nil || limit == volume.Size{}:
		return nil
	case p.Mode == Required:
		return fmt.Errorf("%w: %w", ErrNotEnforced, cause)
	}
	p.Metrics.LimitNotEnforced()
	p.Log.Info("the limit of a volume is not enforced: its pod can take more", append([]any{"bytes", limit.Bytes, "inodes", limit.Inodes,
		logkeys.Cause, cause.Error()}, about...)...)
	return nil
}

// take takes any free ID of which the kernel has neither use nor limit. It sets the others
// aside that it meets.
func (p *Projects) take() (uint32, error) {
	if !p.gives {
		return 0, nil
	}
	for {
		n, ok := p.takeFree()
		if !ok {
			n, ok = p.takeAgain()
		}
		if !ok {
			return 0, errNoID
		}
		quota, err := p.Kernel.Read(p.IDs.First + n)
		if err == nil && quota.isFree() {
			p.count()
			return quota.ID, nil
		}
		p.mu.Lock()
		p.recorded.remove(n)
		if err != nil {
			p.ids.remove(n)
		} else {
			p.setAside(n)
		}
		p.mu.Unlock()
		if err != nil {
			return 0, err
		}
	}
}

func (p *Projects) takeFree() (n uint32, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n, ok = p.ids.take(); ok {
		p.recorded.add(n)
	}
	return n, ok
}

// takeAgain looks at the IDs that are set aside, because no other one is left, and takes one that is free by now.
func (p *Projects) takeAgain() (n uint32, ok bool) {
	p.waiting.look.Lock()
	defer p.waiting.look.Unlock()
	if n, ok = p.takeFree(); ok {
		return n, true // another one has looked meanwhile
	}
	p.lookForFree(true)
	return p.takeFree()
}

// Set gives an open new directory its project and limit, and reports whether it has that project now.
// An error is why the volume cannot be published: there is no room, or the mode is [Required]. about are further words
// of the log about the volume.
func (p *Projects) Set(fd int, id uint32, limit volume.Size, about ...any) (set bool, err error) {
	if err := p.Kernel.SetProject(fd, id); err != nil {
		return false, p.failed(limit, err, about)
	}
	if limit == (volume.Size{}) {
		return true, nil
	}
	if err := p.Kernel.SetLimit(id, limit); err != nil {
		return true, p.failed(limit, err, about)
	}
	return true, nil
}

func (p *Projects) failed(limit volume.Size, err error, about []any) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return err
	}
	return p.NotEnforced(limit, err, about...)
}

// Of returns what a project uses, and its limit if that is enforced, and whether this is known. Files
// that a pod gave another project are not in it.
func (p *Projects) Of(id uint32) (quota Quota, ok bool) {
	if p == nil || id == 0 || p.state == None {
		return Quota{}, false
	}
	quota, err := p.Kernel.Read(id)
	if p.state != Enforced {
		quota.Limit = volume.Size{}
	}
	return quota, err == nil
}

// Held is [Projects.Of] for the project of a volume whose record has that limit. Another program may have changed what
// the kernel has: then it is set again. about are further words of the log about the volume.
func (p *Projects) Held(id uint32, limit volume.Size, about ...any) (quota Quota, ok bool) {
	quota, ok = p.Of(id)
	if !ok || p.state != Enforced {
		return quota, ok
	}
	p.enforce()
	if quota.holds(limit) || !p.beginSetting(id) {
		return quota, ok
	}
	was := quota
	err := p.Kernel.SetLimit(id, limit)
	if err == nil {
		quota, err = p.Kernel.Read(id)
	}
	if err == nil && !quota.holds(limit) {
		err = fmt.Errorf("it is %d bytes and %d inodes still", quota.Limit.Bytes, quota.Limit.Inodes)
	}
	tell := p.endSetting(id, err)
	about = append([]any{"project", id, "bytes", was.Limit.Bytes, "inodes", was.Limit.Inodes}, about...)
	switch {
	case err == nil:
		if p.LimitChanged != nil {
			p.LimitChanged()
		}
		p.Log.Info("another program had changed the limit of a volume; it is set again", about...)
	case tell:
		p.Log.Error(err, "another program has changed the limit of a volume, and it cannot be set again; "+
			"further ones are not logged until that works", about...)
		return was, true
	}
	return quota, true
}

// enforce makes the kernel enforce limits again, if another program has turned that off.
func (p *Projects) enforce() {
	already, err := p.Kernel.Enforce()
	switch was := p.off.Swap(err != nil); {
	case err != nil && !was:
		p.Log.Error(err, "another program has turned project quotas off, or they cannot be asked for: no limit holds until they are on again")
	case err == nil && !already:
		if p.LimitChanged != nil {
			p.LimitChanged()
		}
		p.Log.Info("another program had turned project quotas off; they are on again")
	case err == nil && was:
		p.Log.Info("project quotas are on again")
	}
}

// beginSetting reports whether the limit of an ID may be set: its volume's record is there.
func (p *Projects) beginSetting(id uint32) bool {
	if !p.IDs.has(id) {
		return true // of an earlier range; it is not given to anything
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	n := id - p.IDs.First
	if !p.recorded.has(n) || p.shared[n] > 0 || p.setting[n] {
		return false
	}
	p.setting[n] = true
	return true
}

// endSetting ends what beginSetting has begun. A volume that has gone meanwhile leaves no limit. It reports whether to log
// the error.
func (p *Projects) endSetting(id uint32, cause error) (tell bool) {
	n := id - p.IDs.First
	p.mu.Lock()
	gone := p.setting[n] && !p.recorded.has(n)
	p.mu.Unlock()
	if gone {
		if err := p.Kernel.SetLimit(id, volume.Size{}); err != nil {
			p.Log.Info("the limit of a deleted volume cannot be taken away; this is tried again before another volume gets its project",
				"project", id, logkeys.Cause, err.Error())
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.IDs.has(id) {
		delete(p.setting, n)
	}
	tell = cause != nil && !p.toldUnset
	p.toldUnset = cause != nil
	return tell
}
