package local

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach"
)

// table reads the mount table, without the copies below the host's root.
func (e *environment) table() ([]attach.Mount, error) {
	all, err := e.Machine.Table()
	if err != nil {
		return nil, because(volume.ErrUncertain, err, "read the mount table")
	}
	if e.HostRoot == "" || filepath.Clean(e.HostRoot) == "/" {
		return all, nil
	}
	below := filepath.Clean(e.HostRoot) + "/"
	return slices.DeleteFunc(all, func(m attach.Mount) bool { return strings.HasPrefix(m.Target, below) }), nil
}

// stage makes a volume ready for the pods of the node.
func (t *task) Stage(ctx context.Context, s pools.Staging) error {
	p, err := t.use(ctx, s.Pool)
	if err != nil {
		return err
	}
	defer p.Release()
	r, err := t.whole(p)
	switch {
	case err != nil:
		return err
	case isRetained(r):
		return problemf(volume.ErrUnavailable, "volume %s is retained since %s: its claim was deleted. A new claim gets it back by the "+
			"annotation pools.katbox.io/restore", t.volume, pools.ParseComment(r.Comment).Retained.Since.Format("2006-01-02 15:04:05 MST"))
	case r.Block != s.Block:
		return volume.Invalid("volume_capability", "does not fit volume "+t.volume+", which was made as "+kindOf(r.Block))
	case !r.Block && s.FSType != "" && r.FSType != "" && s.FSType != r.FSType:
		return volume.Invalid("volume_capability.mount.fs_type", "is "+s.FSType+", and volume "+t.volume+" has "+r.FSType)
	}
	if err := t.Machine.MakeDir(s.Path); err != nil {
		return because(volume.ErrUncertain, err, "make the staging directory of volume %s", t.volume)
	}
	if err := t.unshown(ctx); err != nil {
		return err
	}
	if err := p.Stage(ctx, r, s.Path, s.Options, s.ReadOnly); err != nil {
		return t.undo(ctx, p, s, t.failed(err, "stage it at "+s.Path))
	}
	if s.ReadOnly {
		return nil
	}
	if _, err := t.complete(ctx, p, r); err != nil {
		// Its pods run, and an expansion and each later stage try again.
		t.Log.Error(err, "a volume that is to be larger is used with the size that it has", logkeys.Volume, t.volume, "bytes", r.Has())
	}
	return nil
}

func kindOf(block bool) string {
	if block {
		return "a block device"
	}
	return "a file system"
}

// undo undoes a stage that will never succeed, where nothing had been staged before: the kubelet does not unstage
// after such an error. Where that fails, the error is not a final one.
func (t *task) undo(ctx context.Context, p interface {
	Mounts(table []attach.Mount, name string) ([]attach.Mount, error)
}, s pools.Staging, failed error) error {
	if !errors.Is(failed, volume.ErrInvalid) {
		return failed
	}
	table, err := t.table()
	if err == nil {
		var own []attach.Mount
		if own, err = p.Mounts(table, t.volume); err == nil && len(own) == 0 {
			err = t.Machine.Unstage(ctx, t.volume, s.Path)
		}
	}
	if err != nil {
		return because(volume.ErrUncertain, errors.Join(failed, err), "stage volume %s, and undo that", t.volume)
	}
	return failed
}

// unstage undoes stage. It needs no disk.
func (t *task) Unstage(ctx context.Context, path string) error {
	table, err := t.table()
	if err != nil {
		return err
	}
	for _, at := range []string{pools.StagedAt(path, true), pools.StagedAt(path, false)} {
		if m, there := attach.At(table, at); there {
			if !t.mayEnd(m) {
				return t.foreign(m)
			}
		}
	}
	for _, m := range t.named(table) {
		if m.Target != pools.StagedAt(path, true) && m.Target != pools.StagedAt(path, false) {
			return problemf(volume.ErrBusy, "volume %s is still published at %s", t.volume, m.Target)
		}
	}
	if err := t.Machine.Unstage(ctx, t.volume, path); err != nil {
		return t.failed(err, "unstage it from "+path)
	}
	return nil
}

// mayEnd reports whether a mount where the volume is to be taken away may go: the volume's, or one of a disk that was
// taken away under it.
func (t *task) mayEnd(m attach.Mount) bool {
	name, ok := t.nameOf(m)
	return ok && name == t.volume || !ok && t.Machine.Lost(m)
}

func (t *task) foreign(m attach.Mount) error {
	return problemf(volume.ErrForeignMount, "%s of %s is mounted at %s, which is not volume %s; find out what that is, and unmount it",
		m.FSType, m.Source, m.Target, t.volume)
}

// publish gives a staged volume to a pod. It needs no disk: what is staged is in the mount table.
func (t *task) Publish(_ context.Context, p pools.NodePublication) error {
	table, err := t.table()
	if err != nil {
		return err
	}
	from := pools.StagedAt(p.Staging, p.Block)
	m, there := attach.At(table, from)
	if there && t.Machine.Lost(m) {
		return problemf(volume.ErrUnavailable, "%s", t.lost())
	}
	if there {
		name, ok := t.nameOf(m)
		there = ok && name == t.volume
	}
	if !there {
		return problemf(volume.ErrNotStaged, "volume %s is not staged at %s", t.volume, p.Staging)
	}
	if p.OneTarget {
		for _, o := range t.named(table) {
			if o.Target != from && o.Target != p.Target {
				return problemf(volume.ErrOtherTarget, "volume %s may have one target only, and is published at %s", t.volume, o.Target)
			}
		}
	}
	if err := t.Machine.Bind(from, p.Target, p.Options, p.ReadOnly); err != nil {
		return t.failed(err, "publish it at "+p.Target)
	}
	return nil
}

// lost says what became of the disk of the volume, and what to do.
func (t *task) lost() string {
	return "the loop device of volume " + t.volume + " was detached from its image on the node (losetup -D does that); delete the pods " +
		"that use the volume, and it is staged anew"
}

// unpublish takes a volume back from a pod. It needs no disk.
func (t *task) Unpublish(_ context.Context, target string) error {
	table, err := t.table()
	if err != nil {
		return err
	}
	if m, there := attach.At(table, target); there {
		if !t.mayEnd(m) {
			return t.foreign(m)
		}
		if err := t.Machine.Unmount(target); err != nil {
			return t.failed(err, "unmount "+target)
		}
	}
	if err := t.Machine.Remove(target); err != nil {
		return t.failed(err, "remove "+target)
	}
	return nil
}

// expand completes a growth: the volume is as large as its record says already, unless that was refused, or a crash
// came between.
func (t *task) Expand(ctx context.Context, e pools.NodeExpansion) (int64, error) {
	switch lost, err := t.mountedAt(e.Path); {
	case err != nil:
		return 0, err
	case lost:
		return 0, problemf(volume.ErrUnavailable, "%s", t.lost())
	}
	p, err := t.use(ctx, "")
	if err != nil {
		return 0, err
	}
	defer p.Release()
	r, err := t.whole(p)
	if err != nil {
		return 0, err
	}
	if r.Size < e.Required {
		return 0, problemf(volume.ErrUnavailable, "volume %s has %d bytes in its pool, which is less than the %d that it should have", t.volume,
			r.Size, e.Required)
	}
	if _, err := t.complete(ctx, p, r); err != nil {
		return 0, err
	}
	return r.Size, nil
}

// mountedAt fails where the volume is neither staged nor published at a path. lost: a disk is there that was taken away
// under its volume.
func (t *task) mountedAt(path string) (lost bool, err error) {
	table, err := t.table()
	if err != nil {
		return false, err
	}
	for _, at := range []string{pools.StagedAt(path, false), pools.StagedAt(path, true)} {
		if m, there := attach.At(table, at); there {
			if name, ok := t.nameOf(m); ok && name == t.volume {
				return false, nil
			}
			lost = lost || t.Machine.Lost(m)
		}
	}
	if lost {
		return true, nil
	}
	return false, problemf(volume.ErrNotFound, "volume %s is not mounted at %s", t.volume, path)
}

// stats measures a volume, and says whether it can be used.
func (t *task) Stats(ctx context.Context, path string) (volume.Stats, error) {
	lost, err := t.mountedAt(path)
	switch {
	case err != nil:
		return volume.Stats{}, err
	case lost:
		return volume.Stats{Abnormal: true, Condition: t.lost()}, nil
	}
	p, err := t.use(ctx, "")
	if errors.Is(err, volume.ErrUnavailable) {
		return volume.Stats{Abnormal: true, Condition: volume.OneLine(err)}, nil
	}
	if err != nil {
		return volume.Stats{}, err
	}
	defer p.Release()
	r, err := t.whole(p)
	if err != nil {
		return volume.Stats{}, err
	}
	r.Size = r.Has()
	stats, err := p.Stats(r, path)
	if err != nil {
		return stats, t.failed(err, "measure it at "+path)
	}
	return stats, nil
}
