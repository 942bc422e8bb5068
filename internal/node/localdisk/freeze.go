package localdisk

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/node/attach"
)

// What is copied of an image that is in use has to be whole. So the file system on it is frozen for that moment.

// freeze makes the file system on an image whole and still, if it is mounted, until thaw is called. What is on a block
// device is up to those who write to it: thaw is nil then, and where nothing is mounted.
func (i *images) freeze(r local.Record, image *os.File) (thaw func() error, err error) {
	if r.IsSnapshot() || r.Block {
		return nil, nil
	}
	loops, err := loopsOf(image, i.suffix(r))
	if err != nil {
		return nil, err
	}
	defer closeLoops(loops)
	mounted, err := openMounted(loops)
	if err != nil || mounted == nil {
		return nil, err
	}
	// To freeze it writes all that is in memory, while pods wait. Most of that is written before.
	err = kernel.Syncfs(int(mounted.Fd()))
	if err == nil {
		err = kernel.Freeze(int(mounted.Fd()))
	}
	switch {
	case errors.Is(err, unix.EBUSY):
		// Another one froze it, and thaws it. It is still.
		mounted.Close()
		return nil, nil
	case err != nil:
		mounted.Close()
		return nil, fmt.Errorf("freeze the file system of %s: %w", r.Name, err)
	}
	return func() error {
		defer mounted.Close()
		return wrap(thawed(kernel.Thaw(int(mounted.Fd()))), "thaw the file system of %s", r.Name)
	}, nil
}

func thawed(err error) error {
	if errors.Is(err, unix.EINVAL) {
		return nil
	}
	return err
}

// openMounted opens the top of the file system of an image with these loop devices where it is mounted; nil if it is not.
func openMounted(loops []*loop) (*os.File, error) {
	if len(loops) == 0 {
		return nil, nil
	}
	table, err := attach.Table()
	if err != nil {
		return nil, err
	}
	for _, m := range table {
		if !slices.ContainsFunc(loops, func(l *loop) bool { return l.number == m.Device }) {
			continue
		}
		dir, err := kernel.Open(m.Target, unix.O_DIRECTORY|unix.O_NOFOLLOW)
		if err != nil {
			continue // something covers it, or it has gone; another mount of it may be there
		}
		st, err := kernel.Fstat(int(dir.Fd()))
		if err == nil && st.Dev == m.Device {
			return dir, nil
		}
		dir.Close()
	}
	return nil, nil
}

// thawOrigin thaws the origin of a copy that the daemon was making when it ended.
func (i *images) thawOrigin(r local.Record) {
	name := cmp.Or(r.Of, r.Source.Volume)
	if name == "" {
		return
	}
	from := local.Record{Name: name}
	image, err := i.openImage(from, os.O_RDONLY)
	if err != nil {
		return // then there is nothing of it to be mounted
	}
	defer image.Close()
	if err := i.thawImage(from, image); err != nil {
		i.Log.Error(err, "cannot thaw the file system of a volume that may be frozen for a copy; run fsfreeze -u on it", logkeys.Volume, name)
	}
}

func (i *images) thawImage(r local.Record, image *os.File) error {
	loops, err := loopsOf(image, i.suffix(r))
	if err != nil || len(loops) == 0 {
		return err
	}
	defer closeLoops(loops)
	mounted, err := openMounted(loops)
	if err == nil && mounted == nil {
		mounted, err = i.openKept(r.Name, loops)
	}
	if err != nil || mounted == nil {
		return err
	}
	defer mounted.Close()
	return thawed(kernel.Thaw(int(mounted.Fd())))
}

// openKept opens the top of the file system of an image that is mounted nowhere, and has these loop devices all the same;
// nil for the image of a block device. If a volume is unstaged while it is frozen, the kernel keeps the file system, and
// with it the device, until that is thawed.
func (i *images) openKept(name string, loops []*loop) (*os.File, error) {
	r, err := i.Load(name)
	if err != nil || r.Block {
		return nil, err
	}
	top, err := kernel.MountAgain(loops[0].path(), fsTypeOf(r), sameUUID(r)...)
	if err != nil {
		return nil, fmt.Errorf("mount %s once more: %w", loops[0].name, err)
	}
	defer unix.Close(top)
	fd, err := kernel.Openat(top, ".", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, fmt.Errorf("open the top directory of %s: %w", loops[0].name, err)
	}
	return os.NewFile(uintptr(fd), loops[0].name), nil
}
