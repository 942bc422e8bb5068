package localdisk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/beneath"
	"github.com/katbox/katbox/internal/node/files"
)

const restoreIt = "; a new claim with the annotation pools.katbox.io/restore gets it back"

// Show makes the files of a volume readable that is staged nowhere. The error is a [volume.ErrInvalid] for a block
// volume, which has no files, and for an image that cannot be mounted as it is; [volume.ErrUnavailable] while the
// former device of an image is still there, and where the node has no device for it.
func (p *Pool) Show(ctx context.Context, r local.Record) (Shown, error) {
	if err := checkName(r.Name); err != nil {
		return nil, err
	}
	if r.Block {
		return nil, volume.Invalid("volume", r.Name+" is a block device, which has no files to be read"+restoreIt)
	}
	var s *shown
	var err error
	if i, ok := p.backend.(*images); ok {
		s, err = i.show(ctx, r)
	} else {
		s, err = p.showDirectory(r)
	}
	if err != nil {
		return nil, wrap(err, "read %s of pool %s", r.Name, p.path)
	}
	return s, nil
}

// shown are the files of a volume: top is the directory that they are in. An image has a device as well.
type shown struct {
	top            int
	device, suffix string
}

func (p *Pool) showDirectory(r local.Record) (*shown, error) {
	_, part := p.part(r)
	top, err := kernel.Openat(int(part.Fd()), r.Name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if err != nil {
		return nil, fmt.Errorf("data of %s: %w", r.Name, err)
	}
	return &shown{top: top}, nil
}

// show mounts an image for this process alone. The device refuses writes, and the image is open for reading only: not
// even the kernel can change a byte of it. So the kernel refuses a file system whose journal has changes that were not
// carried out. With noload or norecovery it would show that one without them: files that are older than what the pod
// had on disk, as if they were the last.
func (i *images) show(ctx context.Context, r local.Record) (_ *shown, err error) {
	image, err := i.openImage(r, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer image.Close()
	if err := insist(ctx, func() error { return i.idle(r, image) }); err != nil {
		return nil, unavailable(err)
	}
	l, err := attachLoop(image, kernel.LoopAutoclear|kernel.LoopReadOnly)
	if err != nil {
		return nil, unavailable(fmt.Errorf("no loop device for its image: %w", err))
	}
	// The mount keeps the device from here on. It goes by itself with the last handle.
	defer l.Close()
	options := sameUUID(r)
	if fsTypeOf(r) != "xfs" {
		options = []string{"errors=continue"} // whatever its superblock says
	}
	s := &shown{device: l.name, suffix: i.suffix(r)}
	err = insist(ctx, func() (err error) {
		if s.top, err = kernel.MountUnattached(l.path(), fsTypeOf(r), options...); errors.Is(err, unix.EBUSY) {
			err = fmt.Errorf("%w: %w", volume.ErrBusy, err)
		}
		return err
	})
	switch {
	case errors.Is(err, volume.ErrBusy):
		return nil, unavailable(err)
	case errors.Is(err, unix.EROFS):
		return nil, volume.Invalid("volume", r.Name+" was not unmounted in order, as after a power cut: its journal has changes that only a "+
			"mount for writing carries out, and reading changes nothing"+restoreIt)
	case errors.Is(err, unix.EUCLEAN), errors.Is(err, unix.EBADMSG):
		return nil, volume.Invalid("volume", fmt.Sprintf("%s has a damaged file system, the kernel's log says how: %v%s", r.Name, err, restoreIt))
	case err != nil:
		return nil, fmt.Errorf("mount its %s for reading: %w", fsTypeOf(r), err)
	}
	return s, nil
}

// sameUUID lets the kernel mount the file system of a volume that may be a copy of another one: the two have the same UUID.
func sameUUID(r local.Record) []string {
	if fsTypeOf(r) == "xfs" {
		return []string{"nouuid"}
	}
	return nil
}

// idle fails with [volume.ErrBusy] while an image has a device: that of its last mount goes behind the last handle.
func (i *images) idle(r local.Record, image *os.File) error {
	loops, err := loopsOf(image, i.suffix(r))
	if err != nil {
		return err
	}
	defer closeLoops(loops)
	if len(loops) > 0 {
		return fmt.Errorf("%w: it is in use as %s", volume.ErrBusy, loops[0].name)
	}
	return nil
}

func unavailable(err error) error { return fmt.Errorf("%w: %w", volume.ErrUnavailable, err) }

// Tree opens the files.
func (s *shown) Tree() (*files.Tree, error) {
	fd, err := kernel.Openat(s.top, ".", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, fmt.Errorf("open the top directory: %w", err)
	}
	opener, err := beneath.New(fd)
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return files.New(fd, opener), nil
}

// End lets the files go. An image is mounted, and has its device, until readers have closed what they opened. End waits
// for that.
func (s *shown) End() error {
	if err := unix.Close(s.top); err != nil {
		return fmt.Errorf("end the mount of %s: %w", s.device, err)
	}
	const pause = 20 * time.Millisecond
	for s.device != "" {
		// sysfs is in memory. To open the device would keep it.
		content, err := readBacking(s.device)
		if err != nil || !strings.HasSuffix(backingFile(content), s.suffix) {
			break // the kernel has no file for the device any more, or that of another volume
		}
		if err := retry.Pause(context.Background(), pause); err != nil {
			return err
		}
	}
	return nil
}
