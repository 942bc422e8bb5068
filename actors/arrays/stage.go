package arrays

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"

	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach"
	"github.com/katbox/katbox/internal/node/attach/staged"
)

// recordOf returns what is kept of a volume that is to be staged.
func recordOf(s pools.Staging) staged.Record {
	r := staged.Record{
		Volume: s.Volume, Path: s.Path, Block: s.Block, FSType: s.FSType, ReadOnly: s.ReadOnly, Options: slices.Clone(s.Options),
		Attachment: s.Attachment, Serial: s.Attachment.Serial,
	}
	r.Attachment.Volume = s.Volume
	return r
}

// sameVolume reports whether two records describe the same volume at the same place, however it is reached.
func sameVolume(a, b staged.Record) bool {
	x, y := a.Attachment, b.Attachment
	return a.Path == b.Path && a.Block == b.Block && a.FSType == b.FSType && a.ReadOnly == b.ReadOnly && slices.Equal(a.Options, b.Options) &&
		sameDevice(a, b) && pathOf(x.Export) == pathOf(y.Export)
}

// called is the export that the call for a volume named.
func called(r staged.Record) string { return cmp.Or(r.Called, r.Attachment.Export) }

func sameDevice(a, b staged.Record) bool {
	return idOf(a) == idOf(b) && a.Attachment.Protocol == b.Attachment.Protocol && a.Attachment.Target == b.Attachment.Target
}

// stage makes a volume ready on the node. The record says so before the first change.
func (t *task) Stage(ctx context.Context, s pools.Staging) error {
	r := recordOf(s)
	before, recorded, err := t.load()
	if err != nil {
		return err
	}
	if recorded && sameDevice(before, r) && pathOf(called(before)) == pathOf(called(r)) {
		r.Called, r.Attachment.Export = before.Called, before.Attachment.Export // what is mounted stays where it is
	}
	if recorded {
		if err := t.makeWay(ctx, before, r); err != nil {
			return err
		}
	}
	if sameDevice(before, r) { // the record may be a note
		r.Formatting, r.Serial = before.Formatting, before.Serial
	}
	now, err := t.there(ctx, r, recorded)
	if err != nil {
		return err
	}
	if !now.there {
		r.Called, r.Attachment.Export = "", s.Attachment.Export
		t.follow(ctx, &r)
	}
	if !recorded || !reflect.DeepEqual(before, r) {
		if err := t.save(r, !recorded); err != nil {
			return err
		}
	}
	if now.there {
		return t.look(ctx, r, now)
	}
	return t.undoFinal(ctx, &r, t.makeReady(ctx, &r))
}

// follow takes over where a volume over NFS is mounted from by now: what the call says is as old as the attachment, and a
// mount of an address that is gone hangs. It says nothing where the API server does not: then the mount still has half of
// the time that the caller waits.
func (t *task) follow(ctx context.Context, r *staged.Record) {
	if r.Attachment.Protocol != pools.NFS {
		return
	}
	t.progress.Waits("the API server, which knows where the volume is by now")
	ctx, cancel := context.WithTimeout(ctx, t.Patience/2)
	defer cancel()
	now, err := t.Cluster.Where(ctx, pools.AttachmentName(t.volume, t.NodeName))
	if err != nil {
		t.Log.V(1).Info("mount a volume where it was when it was attached", "volume", t.volume, "reason", volume.OneLine(err))
		return
	}
	if now.Export == "" {
		return
	}
	if pathOf(now.Export) != pathOf(r.Attachment.Export) {
		r.Called = r.Attachment.Export
	}
	r.Attachment.Export = now.Export
}

// makeWay deals with what the record tells of: what is staged in another way is a conflict, and what a failure
// has left of that goes.
func (t *task) makeWay(ctx context.Context, before, r staged.Record) error {
	old, err := t.trace(ctx, before)
	if err != nil {
		return err
	}
	switch {
	case old.vanished && len(old.elsewhere) > 0:
		return problemf(volume.ErrUnavailable, "the disk of volume %s has vanished under what is mounted at %s: its iSCSI session was lost; "+
			"delete the pods that use the volume, and it is staged anew", t.volume, old.elsewhere[0].Target)
	case old.vanished:
		if err := t.clear(before, old); err != nil {
			return err
		}
	case sameVolume(before, r):
		return nil
	case old.there && !old.foreign, len(old.elsewhere) > 0:
		return problemf(volume.ErrConflict, "volume %s is staged at %s with other parameters", t.volume, before.Path)
	}
	if sameDevice(before, r) {
		return nil
	}
	return t.leave(ctx, before, old)
}

// there returns what the node has of the volume, perhaps by an older daemon, if it can stay.
func (t *task) there(ctx context.Context, r staged.Record, recorded bool) (traces, error) {
	if !recorded {
		// Most volumes come for the first time. Of a disk that is there already the scan will tell.
		at, err := t.Look(pools.StagedAt(r.Path, r.Block))
		if err == nil && !at.Mounted {
			return traces{}, nil
		}
	}
	now, err := t.trace(ctx, r)
	switch {
	case err != nil:
		return now, err
	case now.foreign:
		return now, t.foreignAt(now.staging)
	case now.vanished:
		return now, problemf(volume.ErrUnavailable, "volume %s is staged at %s, but its disk has vanished: its iSCSI session was lost; "+
			"it is staged anew once it was unstaged", t.volume, r.Path)
	case now.there && recorded && now.staging.ReadOnly && !r.ReadOnly && !r.Block:
		return now, problemf(volume.ErrUnavailable, "the kernel has made the file system of volume %s at %s read-only after an error; "+
			"delete the pods that use the volume, and it is checked and staged anew", t.volume, r.Path)
	case now.there && !r.Block && now.staging.ReadOnly != r.ReadOnly:
		return now, problemf(volume.ErrConflict, "volume %s is staged at %s, read-only: %t", t.volume, r.Path, now.staging.ReadOnly)
	}
	return now, nil
}

// look completes what is staged, and says what is wrong with it.
func (t *task) look(ctx context.Context, r staged.Record, now traces) error {
	if r.Attachment.Protocol == pools.ISCSI {
		t.progress.Waits("the session to " + server(r))
		if err := t.useSession(ctx, r.Attachment); err != nil {
			return because(volume.ErrUnavailable, err, "volume %s is staged, but cannot be used", t.volume)
		}
		if err := t.sessionUp(ctx, r, now.device); err != nil {
			return err
		}
		if !now.device.Is(r.Serial) { // its record is lost
			if err := t.identify(ctx, &r, now.device); err != nil {
				return err
			}
		}
	}
	return t.finish(r)
}

func (t *task) foreignAt(m attach.Mount) error {
	return problemf(volume.ErrForeignMount, "volume %s cannot be staged: %s of %s is mounted at %s", t.volume, m.FSType, m.Source, m.Target)
}

// undoFinal undoes what a stage has begun that will never succeed: after such an error the kubelet may not unstage
// the volume. Where that fails, the error is not a final one.
func (t *task) undoFinal(ctx context.Context, at *staged.Record, failed error) error {
	if !errors.Is(failed, volume.ErrInvalid) {
		return failed
	}
	r := *at
	now, err := t.trace(ctx, r)
	if err == nil && len(now.elsewhere) == 0 {
		err = t.clear(r, now)
	}
	if err == nil {
		err = t.leave(ctx, r, now)
	}
	if err == nil {
		err = t.forget()
	}
	if err != nil {
		return because(volume.ErrUncertain, errors.Join(failed, err), "stage volume %s, and undo that", t.volume)
	}
	return failed
}

// makeReady mounts a volume at its staging path.
func (t *task) makeReady(ctx context.Context, r *staged.Record) error {
	if r.Attachment.Protocol == pools.NFS {
		t.progress.Waits(server(*r))
		if err := t.Disk.MakeDir(r.Path); err != nil {
			return because(volume.ErrUncertain, err, "make the staging directory of volume %s", t.volume)
		}
		if err := t.MountNFS(r.Attachment.Export, r.Path, r.Options, r.ReadOnly); err != nil {
			return t.failed(err, "mount "+r.Attachment.Export)
		}
		return t.verify(ctx, *r, func(at attach.Point) bool { return at.Directory })
	}
	device, err := t.connect(ctx, r)
	if err != nil {
		return err
	}
	t.progress.Waits(server(*r))
	if err := t.Disk.MakeDir(r.Path); err != nil {
		return because(volume.ErrUncertain, err, "make the staging directory of volume %s", t.volume)
	}
	if r.Block {
		if err := t.Disk.BindDevice(device.Path, pools.StagedAt(r.Path, true)); err != nil {
			return t.failed(err, "bind "+device.Path)
		}
		return t.verify(ctx, *r, func(at attach.Point) bool { return at.Node == device.Number && !at.Gone })
	}
	used, err := t.isMounted(*r, device)
	if err == nil && !used {
		err = t.format(ctx, r, device)
	}
	if err != nil {
		return err
	}
	if err := t.Disk.Mount(device.Path, r.Path, r.FSType, r.Options, r.ReadOnly); err != nil {
		return t.failed(err, "mount "+device.Path)
	}
	return t.verify(ctx, *r, func(at attach.Point) bool { return at.Device == device.Number })
}

// isMounted reports whether the file system of a device is mounted, for a pod. Then it is neither checked nor made anew.
func (t *task) isMounted(r staged.Record, device attach.Device) (bool, error) {
	table, err := t.Table()
	if err != nil {
		return false, because(volume.ErrUncertain, err, "read the mount table")
	}
	return slices.ContainsFunc(table, func(m attach.Mount) bool {
		return !t.copied(m) && ofDevices(m, r, []attach.Device{device})
	}), nil
}

// verify looks once more that what is mounted is the volume. isVolume reports whether something is that was mounted
// just now, as far as a look at the path can tell.
func (t *task) verify(ctx context.Context, r staged.Record, isVolume func(attach.Point) bool) error {
	if at, err := t.Look(pools.StagedAt(r.Path, r.Block)); err == nil && at.Mounted && isVolume(at) {
		return t.finish(r)
	}
	now, err := t.trace(ctx, r)
	switch {
	case err != nil:
		return err
	case !now.there || now.vanished:
		return problemf(volume.ErrUncertain, "volume %s was staged at %s, and is gone from there", t.volume, r.Path)
	case now.foreign:
		return t.foreignAt(now.staging)
	}
	return t.finish(r)
}

// finish does what follows the mount: a clone can be smaller than its disk.
func (t *task) finish(r staged.Record) error {
	if r.Attachment.Protocol != pools.ISCSI {
		return nil
	}
	if !r.Block && !r.ReadOnly {
		t.progress.Waits(server(r))
		if _, err := t.Disk.Grow(r.Path); err != nil {
			return t.failed(err, "grow the file system")
		}
	}
	t.report(t.volume, true)
	return nil
}

// failed makes an error of a step that failed; the volume may be half staged. What will never succeed stays
// such.
func (t *task) failed(err error, doing string) error {
	for _, kind := range []error{volume.ErrInvalid, volume.ErrConflict, volume.ErrBusy, volume.ErrUnavailable} {
		if errors.Is(err, kind) {
			return because(kind, err, "volume %s: %s", t.volume, doing)
		}
	}
	return because(volume.ErrUncertain, err, "volume %s: %s", t.volume, doing)
}
