package fakedriver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/soak/internal/content"
)

const (
	trashName     = ".trash"
	sweepInterval = 20 * time.Millisecond
	// soon is when a driver begins to lose what it has published.
	soon = 500 * time.Millisecond
	// rest is how long one that deletes by halves waits between the two, and how
	// long one that leaves mounts does so.
	rest = 2 * time.Second
)

// lifespan is how long it keeps a volume.
func (r *run) lifespan(v record) time.Duration {
	switch {
	case v.orphan:
	case r.cfg.Bug == ShortensFailed && v.onFailure:
		return r.cfg.ReleaseGrace
	case r.cfg.Bug == DeletesEarly:
		return r.cfg.Lifespan / 2
	case r.cfg.Bug == KeepsTooLong, v.prolonged:
		return 20*r.cfg.Lifespan + time.Minute
	}
	return r.asked(v)
}

// asked is how long a volume is to be kept, by its attributes.
func (r *run) asked(v record) time.Duration { return cmp.Or(v.keep, r.cfg.Lifespan) }

// due reports whether a volume is to go without pressure, and why.
func (r *run) due(v record) (reason volume.Reason, is bool) {
	switch {
	case r.attached(v):
		return 0, false
	case !v.released.IsZero() && time.Since(v.released) >= r.cfg.ReleaseGrace:
		return volume.ForReleased, true
	case time.Now().Before(v.pinned) || r.age(v) < r.lifespan(v):
		return 0, false
	}
	return volume.Expired, true
}

// age is how long a volume has been retained.
func (r *run) age(v record) time.Duration {
	if r.cfg.Bug == TrustsWallClock && !v.orphan {
		// Only wall clocks are compared: neither has a monotonic reading.
		return time.Now().Add(r.wallClock()).Round(0).Sub(v.wall.Round(0))
	}
	return time.Since(v.unpublished)
}

// sweep deletes what is due, and harms what is published if that is its bug.
func (r *run) sweep(ctx context.Context) {
	for retry.Pause(ctx, sweepInterval) == nil {
		r.reap()
		for _, v := range r.disk.all(false) {
			if reason, is := r.due(v); is && ctx.Err() == nil {
				r.reap() // what became due before
				r.delete(v, reason)
			}
		}
		r.thin()
		if r.cfg.Bug != LosesFiles && r.cfg.Bug != MovesData {
			continue
		}
		for _, v := range r.disk.all(true) {
			if r.used(v) {
				r.harm(v)
			}
		}
	}
}

// harm does to a published volume what should not be done.
func (r *run) harm(v record) {
	if r.cfg.Bug == MovesData {
		moved := filepath.Join(r.cfg.Work, ".moved", v.id)
		_ = os.MkdirAll(filepath.Dir(moved), 0o750) // what does not work is tried again
		_ = os.Rename(r.data(v), moved)
		return
	}
	entries, _ := os.ReadDir(r.data(v))
	for _, e := range entries {
		if e.Type().IsRegular() {
			_ = os.Remove(filepath.Join(r.data(v), e.Name()))
		}
	}
}

// delete moves a volume to the trash, unless something is mounted in it, or it was published again since the caller
// saw it.
func (r *run) delete(v record, reason volume.Reason) {
	seen := v.unpublished
	end, ok := r.begin(v.id)
	if !ok {
		return
	}
	defer end()
	v, ok = r.disk.get(v.id)
	if !ok || v.published || !v.unpublished.Equal(seen) || r.attached(v) || reason != volume.Purged && time.Now().Before(v.pinned) {
		return
	}
	data := r.data(v)
	r.escape(data)
	if mounts, err := mountsBelow(data); err != nil || len(mounts) > 0 {
		return
	}
	if r.cfg.Bug == DeletesHalf && !v.orphan {
		if v.halved.IsZero() {
			_ = emptyDir(data) // what is left goes with the rest
			v.halved = time.Now()
			r.disk.put(v)
		}
		if time.Since(v.halved) < rest {
			return
		}
	}
	v.deleting = true
	r.disk.put(v)
	r.endLeases(v.id, volume.ErrGone)
	if r.cfg.Bug == LeavesHidden {
		_ = os.MkdirAll(filepath.Join(r.cfg.Work, "."+filepath.Base(v.id)), 0o750) // for nothing
	}
	trash := filepath.Join(r.cfg.Work, trashName, fmt.Sprintf("%s.%d", filepath.Base(v.id), time.Now().UnixNano()))
	if info, err := os.Lstat(data); err == nil && info.IsDir() {
		if os.Rename(data, trash) != nil {
			v.deleting = false
			r.disk.put(v)
			return // the next sweep tries again
		}
	}
	_ = os.Remove(filepath.Dir(data)) // it stays if anything is in there
	r.disk.remove(v.id)
	r.wasteOfDelete()
	r.bury(v, reason)
	if r.cfg.Bug != KeepsTrash {
		_ = removeAll(trash) // the next start tries again
	}
}

// factor is by how much lifespans shrink.
func (r *run) factor() float64 {
	if r.cfg.Headroom == 0 {
		return 1
	}
	share := min(1, free(r.cfg.Work)/r.cfg.Headroom)
	return max(0, 2*share-1) // 0 at the floor, which is half of the headroom
}

// scarce reports whether the disk is as good as full.
func (r *run) scarce() bool { return free(r.cfg.Work) < 0.02 }

// vain is what went in a row while a process had it open. To delete that makes no room.
type vain struct {
	volumes int
	bytes   int64
}

// tells reports whether so much went that it shows that deletions make no room. A person who reads has a volume open as well,
// and those who take next to nothing would hide what others write meanwhile.
func (v vain) tells() bool { return v.volumes >= 3 && v.bytes >= 256<<10 }

// relieve evicts under pressure.
func (r *run) relieve(ctx context.Context) {
	var inVain vain
	for retry.Pause(ctx, r.cfg.PruneInterval) == nil {
		if r.cfg.Bug != NeverEvicts && r.cfg.Bug != NeverEvictsShort {
			r.evict(ctx, &inVain)
		}
	}
}

// evict evicts as long as there is pressure, and measures after each. What cannot be deleted keeps no other volume.
func (r *run) evict(ctx context.Context, inVain *vain) {
	tried := make(map[string]bool)
	for ctx.Err() == nil {
		list, factor := r.disk.all(false), r.factor()
		list = slices.DeleteFunc(list, func(v record) bool { return tried[v.id] || time.Now().Before(v.pinned) || r.attached(v) })
		if factor == 1 {
			*inVain = vain{}
			return
		}
		if r.cfg.Bug == EvictsAll {
			for _, v := range list {
				r.delete(v, volume.ForBytes)
			}
			return
		}
		due := slices.IndexFunc(list, func(v record) bool {
			return time.Since(v.unpublished) >= time.Duration(float64(r.asked(v))*factor)
		})
		if due < 0 {
			return
		}
		next := r.first(list, due)
		data, open := r.data(next), vain{}
		switch {
		case r.streams(next.id): // which end with the volume
		case inUse(data):
			open = vain{1, content.Taken(data)}
		default:
			*inVain = vain{}
		}
		if open.volumes > 0 && inVain.tells() && r.cfg.Bug != EvictsInVain {
			return
		}
		r.delete(next, volume.ForBytes)
		tried[next.id] = true
		if _, there := r.disk.get(next.id); !there {
			inVain.volumes, inVain.bytes = inVain.volumes+open.volumes, inVain.bytes+open.bytes
		}
	}
}

// mostLooked is how many files of a volume are looked at to find one that is open. To look at all of a volume that has taken every
// inode may take seconds on a busy machine, in which nothing goes.
const mostLooked = 500

// inUse reports whether a process has a file of a volume open: to delete it would make no room.
func inUse(data string) bool {
	used, looked := false, 0
	_ = filepath.WalkDir(data, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return nil // what cannot be looked at is no reason to keep it
		}
		if looked++; looked > mostLooked {
			return filepath.SkipAll
		}
		f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOATIME, 0)
		if err != nil {
			return nil
		}
		defer f.Close()
		// A lease for writing is had only by who alone has the file open.
		_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK)
		if used = errors.Is(err, unix.EAGAIN); used {
			return filepath.SkipAll
		}
		return nil
	})
	return used
}

// adopt retains what no call will tell of: volumes of pods that are gone, and
// data directories that it does not know.
func (r *run) adopt(ctx context.Context) {
	missing := make(map[string]time.Time)
	for r.cfg.Bug != KeepsOrphans && retry.Pause(ctx, max(r.cfg.OrphanGrace/4, sweepInterval)) == nil {
		for _, v := range r.disk.all(true) {
			left := r.cfg.Bug != TrustsDirectories && v.target != "" && !exists(v.target)
			if exists(filepath.Join(r.cfg.Kubelet, "pods", v.pod)) && !left {
				delete(missing, v.id)
				continue
			}
			if missing[v.id].IsZero() {
				missing[v.id] = time.Now()
			}
			if time.Since(missing[v.id]) >= r.cfg.OrphanGrace {
				delete(missing, v.id)
				r.orphan(v)
			}
		}
		found, _ := filepath.Glob(filepath.Join(r.cfg.Work, "[^.]*", "*"))
		for _, data := range found {
			v := record{id: filepath.Base(data), pod: filepath.Base(filepath.Dir(data))}
			if _, known := r.disk.get(v.id); !known && !strings.HasPrefix(v.id, ".") {
				r.orphan(v)
			}
		}
	}
}

func (r *run) orphan(v record) {
	end, ok := r.begin(v.id)
	if !ok {
		return
	}
	defer end()
	now, known := r.disk.get(v.id)
	switch {
	case known && !now.published, !known && !isDir(r.data(v)):
	case v.target != "" && unmount(v.target) != nil:
	default:
		v.orphan = true
		r.retain(v)
	}
}
