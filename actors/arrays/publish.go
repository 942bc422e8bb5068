package arrays

import (
	"context"
	"errors"
	"slices"

	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach"
	"github.com/katbox/katbox/internal/node/attach/staged"
)

// publish gives a staged volume to a pod: a bind mount.
func (t *task) Publish(ctx context.Context, p pools.NodePublication) error {
	r, recorded, known, err := t.find(ctx, p.Staging)
	if err != nil {
		return err
	}
	if !known || r.Block != p.Block || recorded && r.Path != p.Staging {
		return t.notStaged(p)
	}
	now, err := t.stagedNow(ctx, r, recorded && !p.OneTarget)
	switch {
	case err != nil:
		return err
	case !now.there || now.foreign:
		return t.notStaged(p)
	case now.vanished:
		return problemf(volume.ErrUnavailable, "the disk of volume %s has vanished: its iSCSI session was lost. Delete the pods that use "+
			"the volume, and it is staged anew", t.volume)
	}
	if p.OneTarget {
		other := func(m attach.Mount) bool {
			return m.Target != p.Target && m.Device == now.staging.Device && m.Root == now.staging.Root
		}
		if i := slices.IndexFunc(now.elsewhere, other); i >= 0 {
			return problemf(volume.ErrOtherTarget, "volume %s may have one target only, and is published at %s", t.volume, now.elsewhere[i].Target)
		}
	}
	t.progress.Waits(server(r))
	err = t.Disk.Bind(pools.StagedAt(r.Path, r.Block), p.Target, p.Options, p.ReadOnly)
	if errors.Is(err, attach.ErrNotOurs) {
		return because(volume.ErrForeignMount, err, "publish volume %s", t.volume)
	}
	if err != nil {
		return t.failed(err, "publish it at "+p.Target)
	}
	return nil
}

// stagedNow returns what is mounted where a volume is staged; unless that will do, it looks for the other mounts
// of the volume too. The node of a device and the number of a file system's tell which disk it is; of an export
// only the mount table says which it is.
func (t *task) stagedNow(ctx context.Context, r staged.Record, willDo bool) (s traces, err error) {
	if !willDo || r.Attachment.Protocol != pools.ISCSI {
		return t.trace(ctx, r)
	}
	path := pools.StagedAt(r.Path, r.Block)
	at, err := t.Look(path)
	if err != nil {
		return s, because(volume.ErrUncertain, err, "look what is mounted at %s", path)
	}
	s.there = at.Mounted
	if s.there {
		s.staging = attach.Mount{Target: path, Device: at.Device}
		err = t.judge(ctx, r, &s)
	}
	return s, err
}

func (t *task) notStaged(p pools.NodePublication) error {
	return problemf(volume.ErrNotStaged, "volume %s is not staged at %s", t.volume, p.Staging)
}

// unpublish takes a volume back from a pod.
func (t *task) Unpublish(ctx context.Context, target string) error {
	table, err := t.Table()
	if err != nil {
		return because(volume.ErrUncertain, err, "read the mount table")
	}
	if m, ok := attach.At(table, target); ok {
		if err := t.mayUnmount(ctx, m); err != nil {
			return err
		}
		t.progress.Waits("what is mounted from " + m.Source)
		if err := t.Disk.Unmount(target); err != nil {
			return t.failed(err, "unmount "+target)
		}
	}
	if err := t.Disk.Remove(target); err != nil {
		return t.failed(err, "remove "+target)
	}
	return nil
}

// mayUnmount refuses to unmount at a target what is known to be something else than the volume.
func (t *task) mayUnmount(ctx context.Context, m attach.Mount) error {
	r, recorded, err := t.load()
	if err != nil {
		return err
	}
	if recorded {
		now, err := t.trace(ctx, r)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(now.elsewhere, func(o attach.Mount) bool { return o.Target == m.Target && within(m, o) }) {
			return nil
		}
		if now.there && !now.foreign {
			return problemf(volume.ErrForeignMount, "%s of %s is mounted at %s, which is not volume %s", m.FSType, m.Source, m.Target, t.volume)
		}
	}
	if !isNFS(m) && !isNode(m) && !slices.Contains([]string{"ext4", "xfs"}, m.FSType) {
		return t.noVolume(m)
	}
	return nil
}

func (t *task) noVolume(m attach.Mount) error {
	return problemf(volume.ErrForeignMount, "volume %s: %s of %s is mounted at %s, which is no volume of an array", t.volume, m.FSType,
		m.Source, m.Target)
}
