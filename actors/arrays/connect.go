package arrays

import (
	"context"
	"errors"
	"time"

	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach"
	"github.com/katbox/katbox/internal/node/attach/staged"
)

const timeFormat = time.RFC3339

// connect makes the device of a volume appear, and makes sure that it is the volume's.
func (t *task) connect(ctx context.Context, r *staged.Record) (attach.Device, error) {
	t.progress.Waits("the session to " + server(*r))
	if err := t.useSession(ctx, r.Attachment); err != nil {
		return attach.Device{}, err
	}
	t.progress.Waits(server(*r))
	device, err := t.Initiator.Scan(ctx, r.Attachment.Target, r.Attachment.LUN, wanted(*r))
	if errors.Is(err, volume.ErrNotFound) || errors.Is(err, attach.ErrNotOurs) {
		device, err = t.scanElsewhere(ctx, r, err)
	}
	switch {
	case errors.Is(err, volume.ErrNotFound):
		return device, because(volume.ErrUnavailable, err, "volume %s is not attached to this node on the array", t.volume)
	case err != nil:
		return device, t.failed(err, "find its disk")
	}
	return device, t.identify(ctx, r, device)
}

// scanElsewhere looks for the disk at the LUN that the array has given the volume since it was attached, if there is one.
func (t *task) scanElsewhere(ctx context.Context, r *staged.Record, failed error) (attach.Device, error) {
	now, err := t.Cluster.Where(ctx, pools.AttachmentName(t.volume, t.NodeName))
	if err != nil || now.Target != r.Attachment.Target || now.LUN == r.Attachment.LUN {
		return attach.Device{}, failed
	}
	r.Attachment.LUN = now.LUN
	if err := t.save(*r, false); err != nil {
		return attach.Device{}, err
	}
	return t.Initiator.Scan(ctx, r.Attachment.Target, r.Attachment.LUN, wanted(*r))
}

// format makes sure that a device has a file system of the right type. It writes to one that is proven to be
// empty only, and to one on which an earlier attempt was ended.
func (t *task) format(ctx context.Context, r *staged.Record, device attach.Device) error {
	if r.Formatting && !r.ReadOnly {
		if err := t.Disk.Reformat(ctx, device.Path, r.FSType); err != nil {
			return t.failed(err, "make a file system again")
		}
		return t.formatted(r)
	}
	content, err := t.Disk.Content(ctx, device.Path)
	switch {
	case err != nil:
		return t.failed(err, "look what is on "+device.Path)
	case content == "" && r.ReadOnly:
		return problemf(volume.ErrUncertain, "volume %s is empty, and cannot get a file system because it is read-only", t.volume)
	case content == "":
		r.Formatting = true
		if err := t.save(*r, false); err != nil {
			return err
		}
		if err := t.Disk.Format(ctx, device.Path, r.FSType); err != nil {
			return t.failed(err, "make a file system")
		}
		return t.formatted(r)
	case content != r.FSType:
		return because(volume.ErrUncertain, attach.ErrNotOurs, "volume %s has %s on it, not %s", t.volume, content, r.FSType)
	case r.ReadOnly:
		return nil
	}
	if err := t.Disk.Check(ctx, device.Path, r.FSType); err != nil {
		return t.failed(err, "check its file system")
	}
	return nil
}

// formatted notes that the file system is whole.
func (t *task) formatted(r *staged.Record) error {
	r.Formatting = false
	return t.save(*r, false)
}

// sessionUp returns an error if the session of a staged volume does not carry I/O.
func (t *task) sessionUp(ctx context.Context, r staged.Record, device attach.Device) error {
	if r.Attachment.Protocol != pools.ISCSI {
		return nil
	}
	session, ok, err := t.Initiator.Session(ctx, r.Attachment.Target)
	switch {
	case err != nil:
		return because(volume.ErrUncertain, err, "look for the session to %s", r.Attachment.Target)
	case !ok:
		return problemf(volume.ErrUnavailable, "volume %s has lost its iSCSI session to %s", t.volume, r.Attachment.Target)
	case !session.LoggedIn:
		return problemf(volume.ErrUnavailable, "volume %s: the array at %s (target %s) has not answered since %s", t.volume, session.Address,
			session.Target, session.Since.Format(timeFormat))
	case device.Name != "" && session.Host != device.Host:
		return problemf(volume.ErrUnavailable, "the array of volume %s has moved to %s, and its disk %s is still where the array was; delete "+
			"the pods that use the volume, and it is staged anew", t.volume, session.Address, device.Name)
	}
	return nil
}
