package disk

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/kernel"
	"github.com/katbox/katbox/internal/volume"
)

const (
	// reserveName is a file that takes room for nothing else than to give it up.
	reserveName = ".reserve"
	reserveSize = 4 * mebibyte
	// reservePiece is how much of it is given up at once. XFS takes 64 KiB in one piece for new inodes.
	reservePiece = 256 << 10
)

// reserve is the room that the records of volumes still have when the disk is full: whatever has filled it, a volume
// can be retained and deleted. It is given up piece by piece, and taken again when there is room.
type reserve struct {
	mu   sync.Mutex
	file *os.File
}

// openReserve opens the file, and takes what it lacks. On a full disk it stays as small as it is.
func (p *Pool) openReserve() error {
	file, err := kernel.Create(fmt.Sprintf("/proc/self/fd/%d/%s", p.here.Fd(), reserveName), os.O_RDWR|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		if noRoom(err) {
			return nil
		}
		return fmt.Errorf("open %s: %w", reserveName, err)
	}
	p.reserve.file = file
	return p.refill()
}

// refill takes what the reserve lacks, as far as there is room.
func (p *Pool) refill() error {
	r := &p.reserve
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file == nil {
		return nil
	}
	st, err := kernel.Fstat(int(r.file.Fd()))
	if err != nil || st.Size >= reserveSize {
		return err
	}
	err = kernel.Fallocate(int(r.file.Fd()), 0, st.Size, reserveSize-st.Size)
	if noRoom(err) || errors.Is(err, unix.EOPNOTSUPP) {
		return kernel.Truncate(r.file, st.Size) // some file systems keep what they found
	}
	if err == nil {
		err = kernel.Sync(r.file)
	}
	return err
}

// withReserve does something that needs little room, and gives up the reserve as long as there is none.
func (p *Pool) withReserve(do func() error) error {
	err := do()
	for noRoom(err) {
		given, failed := p.giveUp()
		if failed != nil {
			return errors.Join(err, failed)
		}
		if !given {
			return err
		}
		err = do()
	}
	return err
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

// noRoom tells whether an error means that the disk is full.
func noRoom(err error) bool {
	return errors.Is(volume.WantsRoom(err, "on the disk"), volume.ErrNoSpace)
}
