package disk

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/attach"
	attachdisk "github.com/katbox/katbox/internal/attach/disk"
)

// NameOf returns whose mount a line of the mount table is: the name of the volume whose directory, disk or disk's node
// it shows. It looks at sysfs alone, and so tells it also when the pool's disk is away. Names of other things that
// look like a volume's are returned, too: the caller compares.
func NameOf(m attach.Mount) (name string, ok bool) {
	if name, ok := nameIn(strings.TrimSuffix(m.Root, removedMark)); ok {
		return name, true
	}
	device := filepath.Base(strings.TrimSuffix(m.Root, removedMark))
	if !strings.HasPrefix(device, "loop") || !isNodeOf(m, device) {
		link, err := os.Readlink(fmt.Sprintf("/sys/dev/block/%d:%d", unix.Major(m.Device), unix.Minor(m.Device)))
		if err != nil {
			return "", false
		}
		device = filepath.Base(link)
	}
	content, err := readBacking(device)
	if err != nil {
		return "", false
	}
	dir, file := filepath.Split(backingFile(content))
	if file != imageName {
		return "", false
	}
	return nameIn(filepath.Clean(dir))
}

// nameIn returns the name of a volume in a path that leads into its directory.
func nameIn(path string) (name string, ok bool) {
	elements := strings.Split(path, "/")
	for i := len(elements) - 2; i > 0; i-- {
		if elements[i] == volumesName && checkName(elements[i+1]) == nil {
			return elements[i+1], true
		}
	}
	return "", false
}

// Unstage takes away what Stage has made: the mount at a path, or the device's node at the file device in it, and the
// loop device of the volume if nothing else uses it. The directory stays. It needs no pool, so that a volume whose
// disk is gone can be unstaged. That nothing is there is no error. The error is [volume.ErrBusy] while a process
// has a file open there.
func Unstage(ctx context.Context, name, path string) error {
	return wrap(unstage(ctx, name, path), "unstage %s at %s", name, path)
}

func unstage(ctx context.Context, name, path string) error {
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
		if of, ok := NameOf(there); ok && of != name {
			return fmt.Errorf("%w: volume %s is mounted at %s", attach.ErrNotOurs, of, target)
		}
		if err := tools.Unmount(target); err != nil {
			return err
		}
	}
	if err := tools.Remove(filepath.Join(path, DeviceFile)); err != nil {
		return err
	}
	return releaseLoops(ctx, name)
}

// releaseLoops detaches the loop devices of a volume that nothing uses any more.
func releaseLoops(ctx context.Context, name string) error {
	suffix := filepath.Join("/", volumesName, name, imageName)
	names, err := loopNames(suffix)
	if err != nil {
		return err
	}
	isOurs := func(l *loop) bool {
		content, err := readBacking(l.name)
		return err == nil && strings.HasSuffix(backingFile(content), suffix)
	}
	for _, device := range names {
		if err := detach(ctx, device, isOurs); err != nil {
			return err
		}
	}
	return nil
}
