package localdisk

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/volume"
)

const (
	// reserveName is a file that takes room for nothing else than to give it up.
	reserveName = ".reserve"
	reserveSize = 4 * mebibyte
	// reservePiece is how much of it is given up at once. XFS takes 64 KiB in one piece for new inodes.
	reservePiece = 256 << 10
	// spareName is a file beside the records, with an inode and a block for the next one.
	spareName = ".spare"
	spareSize = 4096
	// blockUnit is what a stat(2) counts blocks in.
	blockUnit = 512
)

// reserve is the room that the records of volumes still have when the disk is full: whatever has filled it, a volume
// can be retained and deleted. Bytes are given up piece by piece, and taken again when there is room. The inode is never
// given up: the process that has filled the disk would take it first.
type reserve struct {
	mu   sync.Mutex
	file *os.File
}

// refill takes what the reserve lacks, as far as there is room. On a full disk it stays as small as it is.
func (p *Pool) refill() error {
	r := &p.reserve
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := p.makeSpare(); err != nil {
		return fmt.Errorf("make %s/%s: %w", recordsName, spareName, err)
	}
	if r.file == nil {
		if _, err := p.onlyFile(p.here, reserveName); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("look at %s: %w", reserveName, err)
		}
		file, err := kernel.Create(fmt.Sprintf("/proc/self/fd/%d/%s", p.here.Fd(), reserveName), os.O_RDWR|unix.O_NOFOLLOW, 0o600)
		switch {
		case noRoom(err):
			return nil
		case err != nil:
			return fmt.Errorf("open %s: %w", reserveName, err)
		}
		r.file = file
	}
	st, err := kernel.Fstat(int(r.file.Fd()))
	has := st.Size
	if st.Blocks*blockUnit < has {
		has = 0 // what has restored it left zeros out
	}
	if err != nil || has >= reserveSize {
		return err
	}
	err = kernel.Fallocate(int(r.file.Fd()), 0, has, reserveSize-has)
	if noRoom(err) || errors.Is(err, unix.EOPNOTSUPP) {
		return kernel.Truncate(r.file, st.Size) // some file systems keep what they found
	}
	if err == nil {
		err = kernel.Sync(r.file)
	}
	return err
}

// onlyFile looks at a file that holds room. What is in its place and no file is set aside.
func (p *Pool) onlyFile(dir *os.File, name string) (unix.Stat_t, error) {
	st, err := kernel.Lstatat(int(dir.Fd()), name)
	if err != nil || st.Mode&unix.S_IFMT == unix.S_IFREG {
		return st, err
	}
	aside := damagedPrefix + rand.Text()
	if err := kernel.Renameat(int(dir.Fd()), name, int(dir.Fd()), aside); err != nil {
		return st, err
	}
	p.Log.Info("set aside a file that has the name of one of the pool's own", logkeys.Path, p.path, "name", name, "aside", aside)
	return st, fs.ErrNotExist
}

// makeSpare makes the spare file, if there is none that has a block. A pool of an earlier version whose disk has no inode makes
// it of the reserve's.
func (p *Pool) makeSpare() error {
	here, records := int(p.here.Fd()), int(p.records.Fd())
	st, err := p.onlyFile(p.records, spareName)
	there := err == nil
	if there && st.Blocks > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err = writeFile(p.records, spareName, make([]byte, spareSize))
	if there || !noRoom(err) {
		return ignoreNoRoom(err)
	}
	space, failed := p.dir.Space()
	if failed != nil || p.reserve.file != nil || space.Total.Inodes == 0 || space.Free.Inodes > 0 {
		return failed
	}
	return ignoreMissing(kernel.Renameat(here, reserveName, records, spareName))
}

// rewrite replaces the record of a volume that is there. Where the disk has no room for one more file, the spare file
// becomes the record, and the former record the spare file. Only where that finds no room either, as on btrfs, which
// overwrites nothing in place, the reserve is given up.
func (p *Pool) rewrite(name string, content []byte) error {
	err := writeFile(p.records, name, content)
	for noRoom(err) {
		swapped := p.swap(name, content)
		if swapped == nil || errors.Is(swapped, errNoRecord) {
			return swapped
		}
		given, failed := p.giveUp()
		if failed != nil || !given {
			return errors.Join(err, swapped, failed)
		}
		err = writeFile(p.records, name, content)
	}
	return err
}

var errNoRecord = fmt.Errorf("%w for a record that is not there yet", volume.ErrNoSpace)

// swap writes a record to the spare file, durably, and exchanges it with the record that is there.
func (p *Pool) swap(name string, content []byte) error {
	p.reserve.mu.Lock()
	defer p.reserve.mu.Unlock()
	records := int(p.records.Fd())
	if _, err := kernel.Lstatat(records, name); errors.Is(err, fs.ErrNotExist) {
		return errNoRecord
	}
	fd, err := kernel.Openat(records, spareName, unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK)
	if err != nil {
		return fmt.Errorf("open %s/%s: %w", recordsName, spareName, err)
	}
	file := os.NewFile(uintptr(fd), spareName)
	err = kernel.WriteAt(file, content, 0)
	if err == nil {
		err = kernel.Truncate(file, int64(len(content)))
	}
	if err == nil {
		err = kernel.Sync(file)
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = kernel.Exchange(records, spareName, name)
	}
	if err == nil {
		err = kernel.Sync(p.records)
	}
	return wrap(err, "write it to %s/%s", recordsName, spareName)
}

// giveUp gives up a piece of the reserve. It returns false if there is nothing left of it.
func (p *Pool) giveUp() (bool, error) {
	r := &p.reserve
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file == nil {
		return false, nil
	}
	st, err := kernel.Fstat(int(r.file.Fd()))
	if err != nil || st.Size == 0 {
		return false, err
	}
	if err := kernel.Truncate(r.file, max(st.Size-reservePiece, 0)); err != nil {
		return false, err
	}
	// Btrfs has the room back with the next transaction only.
	return true, kernel.Syncfs(int(r.file.Fd()))
}

func ignoreNoRoom(err error) error {
	if noRoom(err) {
		return nil
	}
	return err
}

// noRoom reports whether an error means that the disk is full.
func noRoom(err error) bool {
	return errors.Is(volume.WantsRoom(err, "on the disk"), volume.ErrNoSpace)
}
