package arrays

import (
	"context"
	"errors"

	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach/staged"
)

// unstage undoes all that staging has made, in the reverse order: mount, device, session, record.
func (t *task) Unstage(ctx context.Context, path string) error {
	r, recorded, known, err := t.find(ctx, path)
	if err != nil || !known {
		return err
	}
	now, err := t.trace(ctx, r)
	switch {
	case err != nil:
		return err
	case now.there && now.foreign: // it may be the volume after all, and must not be detached then
		return problemf(volume.ErrForeignMount, "volume %s cannot be unstaged: %s of %s is mounted at %s; find out what that is, and unmount it",
			t.volume, now.staging.FSType, now.staging.Source, now.staging.Target)
	case len(now.elsewhere) > 0:
		return problemf(volume.ErrBusy, "volume %s is still published at %s", t.volume, now.elsewhere[0].Target)
	case !recorded: // the intent, for a crash after the mount has gone
		if err := t.save(r, true); err != nil {
			return err
		}
	}
	if err := t.clear(r, now); err != nil {
		return err
	}
	if err := t.leave(ctx, r, now); err != nil {
		return err
	}
	if r.Attachment.Protocol == pools.ISCSI {
		t.report(t.volume, false)
	}
	return t.forget()
}

// clear takes the mount at the staging path away, unless that is something else's.
func (t *task) clear(r staged.Record, now traces) error {
	at := pools.StagedAt(r.Path, r.Block)
	if now.there && !now.foreign {
		t.progress.Waits(server(r))
		if err := t.Disk.Unmount(at); err != nil {
			return t.failed(err, "unmount "+at)
		}
	}
	if !r.Block || now.foreign {
		return nil // the directory is the kubelet's
	}
	if err := errors.Join(t.Disk.Remove(at), t.Disk.Remove(r.Path)); err != nil {
		return t.failed(err, "remove the staging directory")
	}
	return nil
}

// leave removes the devices of a volume that is mounted nowhere, and gives its session back.
func (t *task) leave(ctx context.Context, r staged.Record, now traces) error {
	if r.Attachment.Protocol != pools.ISCSI || r.Attachment.Target == "" {
		return nil
	}
	t.progress.Waits(server(r))
	for _, d := range now.devices {
		if err := t.Initiator.Delete(ctx, d); err != nil {
			return t.failed(err, "remove the disk "+d.Name)
		}
	}
	if err := t.releaseSession(ctx, r.Attachment); err != nil {
		return t.failed(err, "log out of "+r.Attachment.Target)
	}
	return nil
}
