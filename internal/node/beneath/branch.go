package beneath

import (
	"sync"

	"golang.org/x/sys/unix"
)

const (
	// MaxOpen is how many directories a Branch holds open above each other.
	MaxOpen = 64
	// batchSize is how many bytes of names a Branch reads at once: some hundred names, or some sixty
	// of the longest.
	batchSize = 16 << 10
)

// Branch is the way down a tree to the directory that is being read, for trees of any depth. It
// closes the directories above the lowest [MaxOpen], and finds them again on the way back.
type Branch struct {
	opener *Opener
	levels []level
	buf    *buffer
}

type buffer [batchSize]byte

var buffers = sync.Pool{New: func() any { return new(buffer) }}

// level is a directory that is being read.
type level struct {
	ID
	// fd is -1 while the directory is closed.
	fd int
	// next is the position behind the names that were handed out.
	next int64
	// batch are names that were read and not handed out yet; none while the directory is closed.
	batch []waiting
}

type waiting struct {
	name string
	next int64
}

// NewBranch returns a Branch without a directory. The caller calls Close at the end.
func NewBranch(o *Opener) *Branch { return &Branch{opener: o, buf: buffers.Get().(*buffer)} }

// Depth is how many directories are on the way.
func (b *Branch) Depth() int { return len(b.levels) }

// FD is the handle of the lowest directory.
func (b *Branch) FD() int { return b.levels[len(b.levels)-1].fd }

// Next returns the next name in the lowest directory, and "" at its end.
func (b *Branch) Next() (string, error) {
	here := &b.levels[len(b.levels)-1]
	// A batch that holds only . and .. need not be the last.
	for len(here.batch) == 0 {
		size, err := Getdents(here.fd, b.buf[:])
		if err != nil || size <= 0 {
			return "", err
		}
		for r := range Records(b.buf[:size]) {
			here.batch = append(here.batch, waiting{string(r.Name), r.Next})
		}
	}
	first := here.batch[0]
	here.batch, here.next = here.batch[1:], first.next
	return first.name, nil
}

// Enter goes on in an open directory, which is in the lowest one. It takes over fd. If id is of
// another directory, Leave may return an error later.
func (b *Branch) Enter(fd int, id ID) {
	b.levels = append(b.levels, level{ID: id, fd: fd})
	if len(b.levels) <= MaxOpen {
		return
	}
	// It may have been closed before, and not been needed since.
	if far := &b.levels[len(b.levels)-1-MaxOpen]; far.fd >= 0 {
		unix.Close(far.fd)
		far.fd, far.batch = -1, nil
	}
}

// Leave goes back to the directory above, which it opens again if it was closed. The error is that
// of [Opener.Above].
func (b *Branch) Leave() error {
	last := len(b.levels) - 1
	child := b.levels[last]
	defer unix.Close(child.fd)
	b.levels = b.levels[:last]
	if last == 0 || b.levels[last-1].fd >= 0 {
		return nil
	}
	above := &b.levels[last-1]
	fd, err := b.opener.Above(child.fd, above.ID)
	if err != nil {
		return err
	}
	above.fd = fd
	// As in Unnoticed; here it is rare, so a call of its own does.
	_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETFL, unix.O_NOATIME)
	return Seek(fd, above.next)
}

// Close closes the directories that are still open. Nothing else is called after it.
func (b *Branch) Close() {
	for _, l := range b.levels {
		if l.fd >= 0 {
			unix.Close(l.fd)
		}
	}
	b.levels = nil
	buffers.Put(b.buf)
}
