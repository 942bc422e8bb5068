package quota

import (
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"math"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/model/volume"
)

// State is what a file system does about projects.
type State uint8

const (
	// None: it neither counts nor limits what projects use.
	None State = iota
	// Accounted: it counts, and enforces no limit.
	Accounted
	// Enforced: it counts, and refuses what is above a limit.
	Enforced
)

// String returns the state in one word.
func (s State) String() string {
	if s <= Enforced {
		return [...]string{"none", "accounted", "enforced"}[s]
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// Quota is what a project uses, and its limits; zero bytes or inodes set no limit. Soft are those above which the
// kernel allows writes for some days; Katbox sets none.
type Quota struct {
	ID                uint32
	Used, Limit, Soft volume.Size
}

// rounding is less than which file systems add to a limit: one of their blocks.
const rounding = 64 << 10

// holds reports whether the limit is the one that was set.
func (q Quota) holds(limit volume.Size) bool {
	more := q.Limit.Bytes - limit.Bytes
	return q.Soft == volume.Size{} && q.Limit.Inodes == limit.Inodes && more >= 0 && more < rounding && (limit.Bytes != 0 || more == 0)
}

// isFree reports whether neither files nor a limit are of the project.
func (q Quota) isFree() bool { return q.Used == volume.Size{} && q.Limit == volume.Size{} }

// FileSystem is what the kernel says about the quotas of one file system. Its methods may be called
// from several goroutines.
type FileSystem struct {
	quotas kernel.Quotas
	state  State
	reason error
	inside uint32
}

const (
	// projectInherit (FS_XFLAG_PROJINHERIT) gives what is made in a directory its project.
	projectInherit = 0x200
	// unit is what the kernel counts bytes in.
	unit = 512
)

// Detect asks what the file system of an open directory does about projects. The directory has to
// stay open. It changes nothing.
func Detect(dir int) *FileSystem {
	f := &FileSystem{quotas: kernel.Quotas{FD: dir}}
	if f.reason = f.detect(); f.reason != nil {
		f.state = None
	}
	return f
}

func (f *FileSystem) detect() error {
	var err error
	if f.inside, err = f.Project(f.quotas.FD); err != nil {
		return fmt.Errorf("the file system has no projects: %w", err)
	}
	flags, err := kernel.QuotaFlags(f.quotas)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		// Before Linux 5.14 the call is missing, and a filter of system calls may refuse a new one.
		if flags, err = f.throughDevice(); err != nil {
			f.quotas.Device = ""
		}
	}
	switch {
	case err != nil:
		return fmt.Errorf("the file system is not mounted with project quotas: %w", err)
	case flags&kernel.ProjectsCounted == 0:
		return errors.New("the file system is not mounted with project quotas")
	}
	// The flags are for all to see, the quotas are not.
	if _, err := kernel.NextQuota(f.quotas, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("read the project quotas: %w", err)
	}
	f.state = Accounted
	if flags&kernel.ProjectsLimited != 0 {
		f.state = Enforced
	}
	return nil
}

// throughDevice asks by the path of the block device, as all kernels understand it. That path is
// not known in a container, so it makes a node for the device. A handle of the node remains.
func (f *FileSystem) throughDevice() (flags uint16, err error) {
	st, err := kernel.Fstat(f.quotas.FD)
	if err != nil {
		return 0, err
	}
	node := filepath.Join("/dev", "katbox-"+rand.Text())
	if err := kernel.MakeBlockDevice(node, st.Dev); err != nil {
		return 0, fmt.Errorf("make a node for the block device: %w", err)
	}
	handle, err := kernel.Openat(unix.AT_FDCWD, node, unix.O_PATH)
	if err := errors.Join(err, kernel.Remove(node)); err != nil {
		return 0, fmt.Errorf("open the node of the block device: %w", err)
	}
	f.quotas.Device = fmt.Sprintf("/proc/self/fd/%d", handle)
	flags, err = kernel.QuotaFlags(f.quotas)
	if err != nil {
		unix.Close(handle)
	}
	return flags, err
}

// State returns what the file system does, and why it does nothing.
func (f *FileSystem) State() (State, error) { return f.state, f.reason }

// Inside returns the project that the directory of [Detect] gives to all that is made in it; 0 if
// none. That is how an administrator limits a whole directory.
func (f *FileSystem) Inside() uint32 { return f.inside }

// Enforce reports whether limits are enforced, as they were at the start. If they are not, another program has turned that
// off, and Enforce turns it on again.
func (f *FileSystem) Enforce() (already bool, err error) {
	flags, err := kernel.QuotaFlags(f.quotas)
	switch {
	case err != nil:
		return false, fmt.Errorf("read whether limits are enforced: %w", err)
	case flags&kernel.ProjectsLimited != 0:
		return true, nil
	}
	if err := kernel.LimitProjects(f.quotas); err != nil {
		return false, fmt.Errorf("turn project quotas on: %w", err)
	}
	return false, nil
}

// Project returns the project that an open directory gives to all that is made in it; 0 if none.
func (f *FileSystem) Project(fd int) (uint32, error) {
	attr, err := kernel.GetXAttr(fd)
	if err != nil || attr.XFlags&projectInherit == 0 {
		return 0, err
	}
	return attr.Project, nil
}

// SetProject gives an open file or directory a project. What is in a directory keeps its own, and what will be made in it
// gets this one.
func (f *FileSystem) SetProject(fd int, id uint32) error {
	attr, err := kernel.GetXAttr(fd)
	if err != nil {
		return fmt.Errorf("read the project: %w", err)
	}
	st, err := kernel.Fstat(fd)
	if err != nil {
		return err
	}
	attr.Project = id
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		attr.XFlags |= projectInherit
	}
	if err := kernel.SetXAttr(fd, attr); err != nil {
		return fmt.Errorf("set project %d: %w", id, err)
	}
	return nil
}

// SetLimit sets how much a project may take, and no soft limit. Bytes are rounded up to units of 512.
func (f *FileSystem) SetLimit(id uint32, limit volume.Size) error {
	units := limit.Bytes / unit
	if limit.Bytes%unit != 0 {
		units++
	}
	if err := kernel.SetLimit(f.quotas, id, uint64(units), uint64(limit.Inodes)); err != nil {
		return fmt.Errorf("set the limit of project %d: %w", id, err)
	}
	return nil
}

// Read returns what a project uses, and its limits.
func (f *FileSystem) Read(id uint32) (Quota, error) {
	quota, err := kernel.GetQuota(f.quotas, id)
	switch {
	case errors.Is(err, unix.ENOENT):
		return Quota{ID: id}, nil
	case err != nil:
		return Quota{}, fmt.Errorf("read the quota of project %d: %w", id, err)
	}
	return quotaOf(&quota), nil
}

// From yields what the file system has counted of the project with that ID and of all higher ones.
// An error ends it.
func (f *FileSystem) From(id uint32) iter.Seq2[Quota, error] {
	return func(yield func(Quota, error) bool) {
		for {
			quota, err := kernel.NextQuota(f.quotas, id)
			switch {
			case errors.Is(err, unix.ENOENT):
				return
			case err != nil:
				yield(Quota{}, fmt.Errorf("list the projects from %d on: %w", id, err))
				return
			case quota.ID < id:
				yield(Quota{}, fmt.Errorf("list the projects from %d on: the kernel answers with %d", id, quota.ID))
				return
			}
			if !yield(quotaOf(&quota), nil) || quota.ID == math.MaxUint32 {
				return
			}
			id = quota.ID + 1
		}
	}
}

func quotaOf(q *kernel.ProjectQuota) Quota {
	return Quota{ID: q.ID, Used: sizeOf(q.Bytes, q.Inodes), Soft: sizeOf(q.SoftBytes, q.SoftInodes),
		Limit: sizeOf(max(q.HardBytes, q.SoftBytes), max(q.HardInodes, q.SoftInodes))}
}

func sizeOf(units, inodes uint64) volume.Size {
	return volume.Size{Bytes: int64(min(units, math.MaxInt64/unit)) * unit, Inodes: int64(min(inodes, math.MaxInt64))}
}
