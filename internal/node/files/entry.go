package files

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/lib/paths"
)

// Type is what a name in a volume is.
type Type string

// The types of entries. A mount is a directory or a file that something is mounted on: nothing is
// known of what it hides, and what is mounted is not asked.
const (
	Regular   Type = "file"
	Directory Type = "directory"
	Symlink   Type = "symlink"
	FIFO      Type = "fifo"
	Socket    Type = "socket"
	Block     Type = "block"
	Char      Type = "char"
	Mount     Type = "mount"
)

// Entry is one name in a volume. Of a [Mount] only Name, Path and Type are set.
type Entry struct {
	// Name is the last element of Path; both are empty for the top. They may hold any byte but NUL.
	Name string
	// Path may be longer than [paths.Max] in a list or a walk; [paths.ParseRef] then refuses its ref.
	Path paths.Path
	Type Type
	// Target is where a symbolic link points to. It may hold any byte but NUL.
	Target string
	// Size and Allocated are in bytes; Allocated is what the entry takes on the disk.
	Size, Allocated int64
	// Mode has the permissions and the bits of setuid, setgid and sticky: at most 0o7777.
	Mode     uint32
	UID, GID uint32
	ModTime  time.Time
	Links    uint64
	// Device and Inode tell whether two entries are one file.
	Device, Inode uint64
	// TooDeep says that a walk does not enter this directory: the paths below are too long.
	TooDeep bool
}

// maxTarget is the length of the longest target of a symbolic link (PATH_MAX).
const maxTarget = 4096

// newEntry describes what the handle fd stands for.
func newEntry(p paths.Path, fd int) (Entry, error) {
	st, err := kernel.Fstat(fd)
	if err != nil {
		return Entry{}, err
	}
	e := Entry{
		Name: p.Base(), Path: p, Type: typeOf(st.Mode),
		Size: st.Size,
		// st_blocks counts units of 512 bytes, whatever the block size is.
		Allocated: st.Blocks * 512,
		Mode:      st.Mode & 0o7777, UID: st.Uid, GID: st.Gid,
		ModTime: timeOf(&st), Links: uint64(st.Nlink), Device: st.Dev, Inode: st.Ino,
	}
	if e.Type == Symlink {
		e.Target, err = readlink(fd)
	}
	return e, err
}

// timeOf is when the contents were changed last.
func timeOf(st *unix.Stat_t) time.Time { return time.Unix(st.Mtim.Unix()) }

func typeOf(mode uint32) Type {
	switch mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return Directory
	case unix.S_IFLNK:
		return Symlink
	case unix.S_IFIFO:
		return FIFO
	case unix.S_IFSOCK:
		return Socket
	case unix.S_IFBLK:
		return Block
	case unix.S_IFCHR:
		return Char
	}
	return Regular
}

// readlink returns the target of the symbolic link that the handle fd stands for.
func readlink(fd int) (string, error) {
	var buf [maxTarget]byte
	size := 0
	err := kernel.IgnoreEINTR(func() (err error) {
		size, err = unix.Readlinkat(fd, "", buf[:])
		return err
	})
	if err != nil {
		return "", err
	}
	return string(buf[:size]), nil
}
