package localdisk

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/katbox/katbox/internal/node/attach"
	attachdisk "github.com/katbox/katbox/internal/node/attach/disk"
)

// Unstage takes away what Stage has made: the mount at a path, or the device's node at the file device in it, and the
// loop device of the volume if nothing else uses it. The directory stays. It needs no pool, so that a volume whose
// disk is gone can be unstaged. That nothing is there is no error. The error is [volume.ErrBusy] while a process
// has a file open there.
func (l *Locations) Unstage(ctx context.Context, name, path string) error {
	return wrap(l.unstage(ctx, name, path), "unstage %s at %s", name, path)
}

func (l *Locations) unstage(ctx context.Context, name, path string) error {
	var tools attachdisk.Tools
	if err := checkName(name); err != nil {
		return err
	}
	table, err := attach.Table()
	if err != nil {
		return err
	}
	for _, target := range []string{filepath.Join(path, DeviceFile), path} {
		there, ok := attach.At(table, target)
		if !ok {
			continue
		}
		if of, ok := l.NameOf(there); ok && of != name {
			return fmt.Errorf("%w: volume %s is mounted at %s", attach.ErrNotOurs, of, target)
		}
		if err := tools.Unmount(target); err != nil {
			return err
		}
	}
	if err := tools.Remove(filepath.Join(path, DeviceFile)); err != nil {
		return err
	}
	return l.releaseLoops(ctx, name)
}

// releaseLoops detaches the loop devices of a volume that nothing uses any more.
func (l *Locations) releaseLoops(ctx context.Context, name string) error {
	names, err := loopNames(filepath.Join("/", volumesName, name, imageName))
	if err != nil {
		return err
	}
	isOurs := func(has *loop) bool {
		of, ok := l.ofDevice(has.name)
		return ok && of == name
	}
	for _, device := range names {
		if err := detach(ctx, device, isOurs); err != nil {
			return err
		}
	}
	return nil
}
