package localdisk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach"
	attachdisk "github.com/katbox/katbox/internal/node/attach/disk"
	"github.com/katbox/katbox/internal/node/scratch"
)

// images keeps each volume in a file that a loop device makes a disk of.
type images struct {
	*Pool
	// copyOnWrite: the disk is btrfs, where only a file with a flag is written to in place.
	copyOnWrite bool
	sharing
}

// fsTypeOf returns the file system of a volume that is no block device.
func fsTypeOf(r local.Record) string { return cmp.Or(r.FSType, "ext4") }

const (
	imageDirMode = 0o700
	mebibyte     = 1 << 20
	// noCopyOnWrite is FS_NOCOW_FL.
	noCopyOnWrite = 0x800000
)

// smallest is the size in MiB from which on there is a file system.
var smallest = map[string]int64{"ext4": 8, "xfs": 300}

func (i *images) create(ctx context.Context, r local.Record, _ uint32) error {
	if least := smallest[fsTypeOf(r)] * mebibyte; !r.Block && r.Size < least {
		return fmt.Errorf("%w: the least for %s are %d bytes", pools.ErrOutOfRange, fsTypeOf(r), least)
	}
	image, err := i.newImage(r)
	if err != nil {
		return err
	}
	defer image.Close()
	if err := kernel.Fallocate(int(image.Fd()), 0, 0, r.Size); err != nil {
		return i.noRoom(image, err)
	}
	if !r.Block {
		if err := i.format(ctx, r, image); err != nil {
			return err
		}
	}
	return i.settle(r, image)
}

// newImage makes the directory and the empty file of a volume or a snapshot.
func (i *images) newImage(r local.Record) (*os.File, error) {
	if _, err := i.dir.CreateAs(i.place(r), scratch.Making{Mode: imageDirMode}); err != nil {
		return nil, err
	}
	dir, err := i.openData(r)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	image, err := kernel.Create(filepath.Join(fmt.Sprintf("/proc/self/fd/%d", dir.Fd()), imageName), os.O_RDWR|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if i.copyOnWrite {
		if err := kernel.SetFlags(int(image.Fd()), noCopyOnWrite); err != nil {
			image.Close()
			return nil, fmt.Errorf("make btrfs write to the image in place: %w", err)
		}
	}
	return image, nil
}

// format makes a file system on a new image.
func (i *images) format(ctx context.Context, r local.Record, image *os.File) error {
	l, err := attachLoop(image, kernel.LoopAutoclear)
	if err != nil {
		return err
	}
	defer l.Close()
	tools := i.toolsFor(r)
	format := tools.Format
	var failed error
	err = insist(ctx, func() error {
		failed = format(ctx, l.path(), fsTypeOf(r))
		// Nothing but this call knows the image yet.
		format = tools.Reformat
		var status *exec.ExitError
		if errors.As(failed, &status) && ctx.Err() == nil {
			return volume.ErrBusy // mkfs does not say in its status whether that is why
		}
		return failed
	})
	return i.about(r, l, cmp.Or(failed, err))
}

// toolsFor makes the log say whose a loop device is.
func (i *images) toolsFor(r local.Record) attachdisk.Tools {
	tools := i.tools
	tools.Log = tools.Log.WithValues(logkeys.Volume, r.Name)
	return tools
}

// about makes an error of a loop device name the image: the device may be gone before a person reads that, or be another one's.
func (i *images) about(r local.Record, l *loop, err error) error {
	if err == nil {
		return nil
	}
	return aboutImage{err, strings.ReplaceAll(err.Error(), l.path(), i.path+i.suffix(r))}
}

type aboutImage struct {
	error
	text string
}

func (e aboutImage) Error() string { return e.text }
func (e aboutImage) Unwrap() error { return e.error }

// settle makes an image durable. What mkfs has freed of its blocks is set aside again.
func (i *images) settle(r local.Record, image *os.File) error {
	if !r.IsSnapshot() {
		if err := setAside(image, r.Size); err != nil {
			return i.noRoom(image, err)
		}
	}
	if err := kernel.Sync(image); err != nil {
		return err
	}
	dir, err := i.openData(r)
	if err != nil {
		return err
	}
	return errors.Join(kernel.Sync(dir), dir.Close())
}

// piece is the longest range of an image in which blocks are set aside that may be there.
const piece = 16 * mebibyte

// setAside sets aside all blocks of an image that are not there. XFS demands as many free blocks as a range is long,
// also where none is missing. So it goes in pieces, except behind the end, where all are missing.
func setAside(image *os.File, size int64) error {
	st, err := kernel.Fstat(int(image.Fd()))
	if err != nil {
		return err
	}
	end := min(st.Size, size)
	for at := int64(0); at < end; at += piece {
		if err := kernel.Fallocate(int(image.Fd()), 0, at, min(piece, end-at)); err != nil {
			return err
		}
	}
	if end == size {
		return nil
	}
	return kernel.Fallocate(int(image.Fd()), 0, end, size-end)
}

// noRoom is the error of setting blocks aside. It gives back at once what was set aside of a new image: in the trash
// it would be in the way of the next volume.
func (i *images) noRoom(image *os.File, err error) error {
	if errors.Is(err, unix.EOPNOTSUPP) {
		return fmt.Errorf("the pool's file system, %s, cannot set blocks aside: %w", i.location.FSType, err)
	}
	if freed := kernel.Truncate(image, 0); freed != nil {
		err = errors.Join(err, freed)
	}
	return fmt.Errorf("set the blocks of the volume aside: %w", err)
}

func (i *images) clone(ctx context.Context, r, from local.Record, _ uint32) error {
	origin, err := i.openImage(from, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer origin.Close()
	image, err := i.newImage(r)
	if err != nil {
		return err
	}
	defer image.Close()
	if err := i.share(ctx, image, from, origin); err != nil {
		return wrap(err, "share the blocks of %s", from.Name)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return i.settle(r, image)
}

// suffix is how the path of a record's image ends.
func (p *Pool) suffix(r local.Record) string {
	part, _ := p.part(r)
	return filepath.Join("/", part, r.Name, imageName)
}

func (p *Pool) openImage(r local.Record, flags int) (*os.File, error) {
	dir, err := p.openData(r)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	fd, err := kernel.Openat(int(dir.Fd()), imageName, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("image of %s: %w", r.Name, err)
	}
	return os.NewFile(uintptr(fd), filepath.Join(dir.Name(), imageName)), nil
}

func (i *images) stage(ctx context.Context, r local.Record, path string, options []string, readOnly bool) error {
	image, err := i.openImage(r, os.O_RDWR)
	if err != nil {
		return err
	}
	defer image.Close()
	if err := i.tools.MakeDir(path); err != nil {
		return err
	}
	var l *loop
	err = insist(ctx, func() (err error) {
		l, err = i.loopFor(r, image, r.Block && readOnly)
		return err
	})
	if err != nil {
		return err
	}
	// Until it is closed, the device stays.
	defer l.Close()
	table, err := attach.Table()
	if err != nil {
		return err
	}
	if r.Block {
		file := filepath.Join(path, DeviceFile)
		if m, there := attach.At(table, file); there && Lost(m) {
			// Pods that have its former device have mounts of their own, which keep the number from others.
			if err := i.tools.Unmount(file); err != nil {
				return err
			}
		}
		return i.tools.BindDevice(l.path(), file)
	}
	if len(mountsOf(table, l.name, l.number)) == 0 {
		if err := i.toolsFor(r).Check(ctx, l.path(), fsTypeOf(r)); err != nil {
			return i.about(r, l, err)
		}
		if !readOnly {
			i.growUnmounted(ctx, r, l)
		}
	}
	return i.about(r, l, insist(ctx, func() error { return i.toolsFor(r).Mount(l.path(), path, fsTypeOf(r), options, readOnly) }))
}

// loopFor returns the loop device of a volume, and makes one if there is none. That of a file system goes by itself
// when the last mount of it goes.
func (i *images) loopFor(r local.Record, image *os.File, readOnly bool) (*loop, error) {
	var flags uint32
	if !r.Block {
		flags |= kernel.LoopAutoclear
	}
	if readOnly {
		flags |= kernel.LoopReadOnly
	}
	loops, err := loopsOf(image, i.suffix(r))
	if err != nil {
		return nil, err
	}
	if len(loops) == 0 {
		return attachLoop(image, flags)
	}
	closeLoops(loops[1:])
	l := loops[0]
	const matters = kernel.LoopAutoclear | kernel.LoopReadOnly
	switch different := (l.Flags ^ flags) & matters; {
	case different&kernel.LoopReadOnly != 0 && !r.Block:
		// A daemon that was killed leaves it to the kernel.
		err = fmt.Errorf("%w: it was being read, and %s is about to go", volume.ErrBusy, l.name)
	case different&kernel.LoopReadOnly != 0:
		err = fmt.Errorf("%w: its device is there, read-only %t", volume.ErrConflict, l.Flags&kernel.LoopReadOnly != 0)
	case different != 0 && r.Block:
		err = fmt.Errorf("%w: its former device, %s, is about to go", volume.ErrBusy, l.name)
	}
	if err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

func (i *images) free(r local.Record) error {
	image, err := i.openImage(r, os.O_RDONLY)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer image.Close()
	loops, err := loopsOf(image, i.suffix(r))
	if err != nil {
		return err
	}
	for _, l := range loops {
		l.Close()
		err := detach(context.Background(), l.name, func(there *loop) bool { return there.Inode == l.Inode && there.Device == l.Device })
		if err != nil {
			return fmt.Errorf("%w: %w", pools.ErrInUse, err)
		}
	}
	return nil
}

func (i *images) mounts(table []attach.Mount, name string) (found []attach.Mount, err error) {
	r := local.Record{Name: name}
	image, err := i.openImage(r, os.O_RDONLY)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer image.Close()
	loops, err := loopsOf(image, i.suffix(r))
	if err != nil {
		return nil, err
	}
	defer closeLoops(loops)
	for _, l := range loops {
		found = append(found, mountsOf(table, l.name, l.number)...)
	}
	return found, nil
}

func (i *images) stats(r local.Record, path string, _ uint32) (volume.Stats, error) {
	stats, err := i.tools.Stats(path)
	if r.Block && errors.Is(err, volume.ErrNotFound) {
		return i.tools.Stats(filepath.Join(path, DeviceFile))
	}
	return stats, err
}
