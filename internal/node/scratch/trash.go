package scratch

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/beneath"
)

func (d *Dir) openTrash() error {
	err := kernel.Mkdirat(d.fd(), trashName, trashMode)
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("make %s: %w", trashName, err)
	}
	fd, err := d.opener.Directory(d.fd(), trashName)
	if err != nil {
		return fmt.Errorf("open %s: %w", trashName, notOurs(err))
	}
	leaveProject(fd)
	d.trash.Store(os.NewFile(uintptr(fd), trashName))
	return nil
}

// remakeTrash makes the trash again if it was removed under the running daemon.
func (d *Dir) remakeTrash() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if st, err := kernel.Fstat(d.trashFD()); err != nil || st.Nlink > 0 {
		return err
	}
	old := d.trash.Load()
	if err := d.openTrash(); err != nil {
		return err
	}
	d.lost = append(d.lost, old)
	return nil
}

// Discard is DiscardAs for a volume without a project.
func (d *Dir) Discard(p volume.Place) (name string, err error) { return d.DiscardAs(p, 0) }

// DiscardAs moves a volume's data directory into the trash by one rename, and returns the name of the
// entry there for [Dir.Erase]. The name has the volume's project; see [ProjectOf]. It also removes the
// pod's directory if that is empty then. A power cut may undo it until [Dir.SyncTrash] has returned.
//
// After an error nothing has been moved. The error wraps fs.ErrNotExist when there is no data
// directory, ErrNotOurs when something else is in its place, such as a mount point, and
// ErrTrashRefuses when the trash does not take the directory; there [Dir.EraseInPlace] works.
func (d *Dir) DiscardAs(p volume.Place, project uint32) (name string, err error) {
	podFD, err := d.openParent(p)
	if errors.Is(err, unix.ENOENT) {
		d.removePod(string(p.Pod))
	}
	if err != nil {
		return "", err
	}
	defer unix.Close(podFD)
	name, err = d.moveToTrash(podFD, string(p.ID), project)
	if errors.Is(err, unix.ENOENT) {
		// The trash was removed, or the data directory just now.
		if err = d.remakeTrash(); err == nil {
			name, err = d.moveToTrash(podFD, string(p.ID), project)
		}
	}
	switch {
	case err == nil:
		d.removePod(string(p.Pod))
		return name, nil
	case errors.Is(err, unix.ENOENT):
		// Not fs.ErrNotExist: it was there before, and may be elsewhere now.
		err = errors.New("it has vanished meanwhile; try again")
	case errors.Is(err, unix.EBUSY):
		// Something was mounted on it since it was opened.
		err = notOurs(err)
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT), errors.Is(err, unix.EXDEV), errors.Is(err, unix.EMLINK):
		err = fmt.Errorf("%w: %w", ErrTrashRefuses, err)
	}
	return "", fmt.Errorf("move %s to the trash: %w", d.Path(p), err)
}

// projectMark stands before the project in the name of an entry of the trash.
const projectMark = "-"

// ProjectOf returns the project of the volume whose data an entry of the trash is; 0 if it had none.
// A pod can change the project of its directory, not the name of the entry.
func ProjectOf(name string) uint32 {
	_, digits, _ := strings.Cut(name, projectMark)
	project, err := strconv.ParseUint(digits, 10, 32)
	if err != nil {
		return 0
	}
	return uint32(project)
}

// SyncTrash makes durable what this process or an earlier one has moved to the trash. Without it a
// power cut could bring back a data directory whose record is gone. Calls at the same time share a
// sync.
func (d *Dir) SyncTrash() error {
	err := d.trashSync.do(func() error { return kernel.Fsync(d.trashFD()) })
	if err != nil {
		return fmt.Errorf("sync the trash of %s: %w", d.root, err)
	}
	return nil
}

// SyncGone makes durable that a pod's volume is gone, however it was removed.
func (d *Dir) SyncGone(pod volume.PodUID) error {
	if err := d.SyncTrash(); err != nil {
		return err
	}
	podFD, err := d.opener.Directory(d.fd(), string(pod))
	switch {
	case err == nil:
		err = kernel.Fsync(podFD)
		unix.Close(podFD)
	case errors.Is(err, unix.ENOENT):
		// The directory's own removal was the last change; its sync covers the rest.
		err = kernel.Fsync(d.fd())
	}
	if err != nil {
		return fmt.Errorf("sync the pod's directory %s/%s: %w", d.root, pod, err)
	}
	return nil
}

// moveToTrash renames a directory to a fresh name in the trash. Flags and projects that a pod has
// set do not prevent it.
func (d *Dir) moveToTrash(at int, name string, project uint32) (fresh string, err error) {
	trash, fresh := d.trashFD(), rand.Text() // 128 random bits
	if project != 0 {
		fresh += projectMark + strconv.FormatUint(uint64(project), 10)
	}
	err = d.rename(at, name, trash, fresh)
	if errors.Is(err, unix.EXDEV) && leaveProject(trash) {
		err = d.rename(at, name, trash, fresh)
	}
	if errors.Is(err, unix.EPERM) {
		released := d.release(at, name)
		if clearFixed(trash) || released {
			err = d.rename(at, name, trash, fresh)
		}
	}
	return fresh, err
}

func (d *Dir) rename(fromDir int, from string, toDir int, to string) error {
	if !d.noRename2.Load() {
		err := kernel.RenameNoReplace(fromDir, from, toDir, to)
		// EINVAL comes from a file system that does not know the flag, EPERM may come from a system
		// call filter that does not know the call.
		if !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EPERM) {
			return err
		}
		if errors.Is(err, unix.ENOSYS) {
			d.noRename2.Store(true)
		}
	}
	// This call would replace an empty directory, but the name is fresh.
	return kernel.Renameat(fromDir, from, toDir, to)
}

// sharedSync lets calls share a sync. A caller never shares a sync that began before its call: that
// one may miss what the caller wants to be durable.
type sharedSync struct {
	mu sync.Mutex
	// next has not begun yet; last is the one that began last, or next. Both may be nil.
	next, last *syncRound
}

// syncRound is one sync, with its result once done is closed.
type syncRound struct {
	done chan struct{}
	err  error
}

var errSyncPanicked = errors.New("the sync did not end")

// do returns the result of a sync that began after this call. The first caller of a round runs it
// when the round before has ended.
func (s *sharedSync) do(sync func() error) error {
	s.mu.Lock()
	if r := s.next; r != nil {
		s.mu.Unlock()
		<-r.done
		return r.err
	}
	r, before := &syncRound{done: make(chan struct{}), err: errSyncPanicked}, s.last
	s.next, s.last = r, r
	s.mu.Unlock()
	if before != nil {
		<-before.done
	}
	s.mu.Lock()
	s.next = nil
	s.mu.Unlock()
	defer close(r.done)
	r.err = sync()
	return r.err
}

// TrashPage returns names of entries of the trash, in no order, for [Dir.Erase]: at least atLeast,
// if there are as many, and some hundred more at most. from is 0 for the first page. next is where
// the next page begins, 0 after the last.
//
// An entry that comes or goes between two pages may be in neither. On tmpfs before Linux 6.6, which
// counts names to find its place, the pages may miss other entries too: to get all, begin again
// after the last page.
func (d *Dir) TrashPage(from int64, atLeast int) (page []string, next int64, err error) {
	fd, err := beneath.Reopen(d.trashFD())
	if err == nil {
		defer unix.Close(fd)
		page, next, err = readPage(fd, from, atLeast)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read the trash of %s: %w", d.root, err)
	}
	return page, next, nil
}

// readPage is TrashPage of an open directory.
func readPage(fd int, from int64, atLeast int) (page []string, next int64, err error) {
	if _, err := unix.Seek(fd, from, unix.SEEK_SET); err != nil {
		return nil, 0, err
	}
	buf := buffers.Get().(*buffer)
	defer buffers.Put(buf)
	for len(page) < atLeast {
		batch, err := buf.next(fd)
		if err != nil || len(batch) == 0 {
			return page, 0, err
		}
		page = append(page, batch...)
	}
	next, err = unix.Seek(fd, 0, unix.SEEK_CUR)
	return page, next, err
}

// TrashSize returns how many entries there are in the trash.
func (d *Dir) TrashSize() (entries int, err error) {
	fd, err := beneath.Reopen(d.trashFD())
	if err != nil {
		return 0, fmt.Errorf("open the trash of %s: %w", d.root, err)
	}
	defer unix.Close(fd)
	for _, err := range eachName(fd) {
		if err != nil {
			return 0, fmt.Errorf("read the trash of %s: %w", d.root, err)
		}
		entries++
	}
	return entries, nil
}
