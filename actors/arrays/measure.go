package arrays

import (
	"context"
	"errors"

	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach"
	"github.com/katbox/katbox/internal/node/attach/staged"
)

// expand makes a staged volume as large as it is on its array, and returns the size of its device.
func (t *task) Expand(ctx context.Context, e pools.NodeExpansion) (int64, error) {
	r, now, err := t.mountedAt(ctx, e.Path)
	if err != nil {
		return 0, err
	}
	t.progress.Waits(server(r))
	if r.Attachment.Protocol == pools.NFS {
		// The server shows the size at once. What a file system has for files is less than what was asked for.
		if e.Required > 0 {
			return e.Required, nil
		}
		stats, err := t.Disk.Stats(e.Path)
		return stats.Space.Total.Bytes, err
	}
	if now.vanished || now.device.Name == "" {
		return 0, problemf(volume.ErrUnavailable, "volume %s cannot grow: its disk has vanished", t.volume)
	}
	size, err := t.Initiator.Rescan(ctx, now.device)
	if err != nil {
		return 0, t.failed(err, "ask for the size of "+now.device.Name)
	}
	if size < e.Required {
		return 0, problemf(volume.ErrUnavailable, "volume %s has %d bytes on its array, which is less than the %d that it should have",
			t.volume, size, e.Required)
	}
	if r.Block || r.ReadOnly || now.staging.ReadOnly {
		return size, nil
	}
	if _, err := t.Disk.Grow(pools.StagedAt(r.Path, false)); err != nil {
		return 0, t.failed(err, "grow the file system")
	}
	return size, nil
}

// mountedAt returns the volume if it is staged or published at a path.
func (t *task) mountedAt(ctx context.Context, path string) (r staged.Record, now traces, err error) {
	r, _, known, err := t.find(ctx, path)
	if err == nil && known {
		now, err = t.trace(ctx, r)
	}
	if err != nil {
		return r, now, err
	}
	if now.there && !now.foreign && (path == r.Path || path == now.staging.Target) {
		return r, now, nil
	}
	for _, m := range now.elsewhere {
		if m.Target == path {
			return r, now, nil
		}
	}
	return r, now, problemf(volume.ErrNotFound, "volume %s is not mounted at %s", t.volume, path)
}

// stats measures a volume, and says whether it can be used.
func (t *task) Stats(ctx context.Context, path string) (volume.Stats, error) {
	r, now, err := t.mountedAt(ctx, path)
	if err != nil {
		return volume.Stats{}, err
	}
	if now.vanished {
		return volume.Stats{Abnormal: true, Condition: "its disk has vanished: the iSCSI session was lost. Delete the pods that use " +
			"the volume, and it is staged anew"}, nil
	}
	at := path
	if path == r.Path {
		at = now.staging.Target
	}
	t.progress.Waits(server(r))
	stats, err := t.Disk.Stats(at)
	if err != nil {
		if errors.Is(err, attach.ErrNotOurs) || errors.Is(err, volume.ErrNotFound) {
			return stats, because(volume.ErrNotFound, err, "volume %s is not mounted at %s", t.volume, path)
		}
		return stats, t.failed(err, "measure it at "+path)
	}
	if err := t.sessionUp(ctx, r, now.device); err != nil {
		stats.Abnormal, stats.Condition = true, err.Error()
	}
	return stats, nil
}
