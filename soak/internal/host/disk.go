package host

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/soak/internal/launch"
)

// DiskKind names a sort of file system for the working directory.
type DiskKind string

// The kinds of disks.
const (
	// Directory is just a directory, on whatever file system the machine has.
	Directory DiskKind = "directory"
	// Tmpfs is in memory. It can be had in a user namespace too.
	Tmpfs DiskKind = "tmpfs"
	// Ext4, XFS and Btrfs are on a loop device, which only the real root can
	// have, on a sparse file inside the run's directory.
	Ext4  DiskKind = "ext4"
	XFS   DiskKind = "xfs"
	Btrfs DiskKind = "btrfs"
	// Auto is Ext4 where the machine can, else Tmpfs.
	Auto DiskKind = "auto"
)

// ErrUnavailable says that this machine, or this user, cannot have such a disk:
// a tool is missing, or there are no loop devices.
var ErrUnavailable = errors.New("this kind of disk cannot be had here")

// Disk is the file system that holds the working directory. All methods may be
// called at the same time, but for Close.
type Disk struct {
	kind     DiskKind
	work     string
	image    string // empty without one
	mounted  bool
	fallback error
	stalling sync.Mutex // held by Stall
	frozen   atomic.Bool
}

// MakeDisk makes a file system of the kind and mounts it on the working directory,
// which stays empty except for what a new file system has in it (lost+found of ext4).
// One on a loop device keeps its blocks in the image, a new file.
//
// The size is in bytes; what there is for files is a bit less. The number of
// inodes is rounded by ext4; 0 leaves it to the file system. Only ext4 and tmpfs
// have a fixed number of them. Size and inodes do not matter for a [Directory].
//
// The error wraps [launch.ErrUsage] for a kind that is not known or numbers that it
// cannot have, and [ErrUnavailable] when another kind might work here. After
// an error nothing is mounted.
func MakeDisk(work, image string, kind DiskKind, size, inodes int64) (*Disk, error) {
	if err := checkDisk(kind, size, inodes); err != nil {
		return nil, err
	}
	if kind != Auto {
		return makeDisk(work, image, kind, size, inodes, false)
	}
	d, err := makeDisk(work, image, Ext4, size, inodes, false)
	if !errors.Is(err, ErrUnavailable) {
		return d, err
	}
	fallback := err
	if d, err = makeDisk(work, image, Tmpfs, size, inodes, false); err != nil {
		return nil, errors.Join(err, fallback)
	}
	d.fallback = fallback
	return d, nil
}

// MakeQuotaDisk is [MakeDisk] for a file system that enforces project quotas. Only Ext4 and XFS can, and
// the error wraps [ErrUnavailable] where the kernel has none.
func MakeQuotaDisk(work, image string, kind DiskKind, size, inodes int64) (*Disk, error) {
	if kind != Ext4 && kind != XFS {
		return nil, fmt.Errorf("%w: disk %q has no project quotas; it has to be ext4 or xfs", launch.ErrUsage, kind)
	}
	if err := checkDisk(kind, size, inodes); err != nil {
		return nil, err
	}
	return makeDisk(work, image, kind, size, inodes, true)
}

func checkDisk(kind DiskKind, size, inodes int64) error {
	switch {
	case !slices.Contains([]DiskKind{Directory, Tmpfs, Ext4, XFS, Btrfs, Auto}, kind):
		return fmt.Errorf("%w: disk %q is not known; it has to be directory, tmpfs, ext4, xfs, btrfs or auto", launch.ErrUsage, kind)
	case kind == Directory:
		return nil
	case size <= 0:
		return fmt.Errorf("%w: a disk of %d bytes; the size has to be more than 0", launch.ErrUsage, size)
	case inodes < 0:
		return fmt.Errorf("%w: a disk with %d inodes; the number cannot be negative", launch.ErrUsage, inodes)
	case inodes > 0 && (kind == XFS || kind == Btrfs):
		return fmt.Errorf("%w: %s makes its inodes as they are needed, so there cannot be %d; leave the number out, or take ext4",
			launch.ErrUsage, kind, inodes)
	}
	return nil
}

// makeDisk makes a disk of a kind that is not Auto.
func makeDisk(work, image string, kind DiskKind, size, inodes int64, quotas bool) (*Disk, error) {
	d := &Disk{kind: kind, work: work}
	switch kind {
	case Directory:
		return d, nil
	case Tmpfs:
		if err := mountTmpfs(work, size, inodes); err != nil {
			return nil, err
		}
	default:
		d.image = image
		if err := makeImage(image, mkfs(image, kind, inodes, quotas), kind, size); err != nil {
			return nil, errors.Join(err, d.removeImage())
		}
		if err := mountImage(image, work, kind, quotas); err != nil {
			return nil, errors.Join(err, d.removeImage())
		}
	}
	d.mounted = true
	return d, nil
}

func mountTmpfs(target string, size, inodes int64) error {
	data := fmt.Sprintf("mode=0755,size=%d", size)
	if inodes > 0 {
		data += fmt.Sprintf(",nr_inodes=%d", inodes)
	}
	if err := unix.Mount("katbox-soak", target, "tmpfs", 0, data); err != nil {
		return fmt.Errorf("%w: mount a tmpfs on %s: %w; %s", ErrUnavailable, target, err, needsRights)
	}
	return nil
}

// Kind is what the disk is; it is never [Auto].
func (d *Disk) Kind() DiskKind { return d.kind }

// Fallback says why a disk that was to be [Auto] is not [Ext4]. It is nil in all
// other cases.
func (d *Disk) Fallback() error { return d.fallback }

// Own reports whether the file system is there for this run alone. If not, it is
// the machine's, and a fault that fills it must refuse.
func (d *Disk) Own() bool { return d.kind != Directory }

// Space is the room on a file system, by the same numbers of statfs(2) that the
// driver goes by.
type Space struct {
	TotalBytes int64
	// FreeBytes is what processes without privileges can still get. Root may
	// have a bit more on the machine's own file systems; ours keep no reserve.
	FreeBytes int64
	// TotalInodes is 0 where there is no limit to their number (btrfs).
	TotalInodes int64
	FreeInodes  int64
}

// Free tells how much room there is. It answers while the disk is stalled, too.
func (d *Disk) Free() (Space, error) {
	var st unix.Statfs_t
	for {
		err := unix.Statfs(d.work, &st)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return Space{}, fmt.Errorf("how much room there is: statfs %s: %w", d.work, err)
		}
		break
	}
	return spaceOf(st), nil
}

func spaceOf(st unix.Statfs_t) Space {
	// Blocks are counted in fragments; old FUSE servers leave their size out.
	unit := st.Frsize
	if unit == 0 {
		unit = st.Bsize
	}
	return Space{
		TotalBytes: int64(st.Blocks) * unit, FreeBytes: int64(st.Bavail) * unit,
		TotalInodes: int64(st.Files), FreeInodes: int64(st.Ffree),
	}
}

// Close unmounts the file system and removes what it was on. The error wraps
// EBUSY while a process has a file open there or something is mounted below;
// then everything is as before, and Close may be called again. Once it has
// succeeded, it does nothing more.
func (d *Disk) Close() error {
	if d.mounted {
		if err := Unmount(d.work); err != nil {
			return fmt.Errorf("take the disk away: %w", err)
		}
		d.mounted = false
	}
	return d.removeImage()
}

func (d *Disk) removeImage() error {
	if d.image == "" {
		return nil
	}
	if err := os.Remove(d.image); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove the disk's image: %w", err)
	}
	d.image = ""
	return nil
}
