package ephemeral

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/katbox/katbox/internal/mount"
	"github.com/katbox/katbox/internal/scratch"
	"github.com/katbox/katbox/internal/volume"
)

// stats measures what the volume uses. It reads the data directory itself, not its mount, so that
// it may run beside any operation and keeps no target busy.
func (e *environment) stats(ctx context.Context, record *volume.Record, id volume.ID, path string, condition error) (volume.Stats, error) {
	if record == nil {
		return volume.Stats{}, fmt.Errorf("%w: volume %s", volume.ErrNotFound, id)
	}
	if _, ok := record.Target(path); !ok {
		return volume.Stats{}, fmt.Errorf("%w: volume %s is not published at %s", volume.ErrNotFound, id, path)
	}
	space, err := e.Scratch.Space()
	if err != nil {
		return volume.Stats{}, err
	}
	bytes, inodes, err := e.Scratch.Usage(ctx, record.Place(), nil)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, scratch.ErrNotOurs):
		condition = fmt.Errorf("its data directory is gone: %w", err)
	case err != nil:
		return volume.Stats{}, err
	}
	stats := volume.Stats{
		Space:     space,
		Used:      volume.Size{Bytes: bytes, Inodes: inodes},
		Condition: "mounted",
	}
	showing, err := e.Mounter.Shows(path, e.Scratch.Source(record.Place()))
	switch {
	case condition != nil:
		stats.Abnormal, stats.Condition = true, condition.Error()
	case err != nil:
		stats.Abnormal, stats.Condition = true, fmt.Sprintf("the mount at %s does not answer: %v", path, err)
	case showing != mount.ShowsSource:
		stats.Abnormal, stats.Condition = true,
			fmt.Sprintf("its data directory is not mounted at %s; the kubelet mounts it when it publishes again", path)
	}
	return stats, nil
}
