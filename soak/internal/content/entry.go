package content

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/katbox/katbox/soak/internal/workload"
)

// Spec says what is in a volume.
type Spec struct {
	// ID is the volume ID.
	ID      string
	Content workload.Content
	// Outside is a directory outside of the volume, as an absolute path, that
	// symlinks in it lead to. What is there must survive the volume's deletion.
	// It is needed where Content has Links.
	Outside string
}

// kind is what an entry of a directory is.
type kind int

const (
	file kind = iota
	sparse
	directory
	symlink
	hardlink
	fifo
	socket
)

var kindNames = map[kind]string{
	file: "file", sparse: "sparse file", directory: "directory", symlink: "symlink", hardlink: "hard link",
	fifo: "FIFO", socket: "socket",
}

func (k kind) String() string { return kindNames[k] }

// entry is one thing in a volume.
type entry struct {
	// in is the directory it is in, from the volume's directory on.
	in   []string
	name string
	kind kind
	// mode are the permission bits, with setuid and its like.
	mode uint32
	// size is in bytes, and key decides which.
	size int64
	key  uint64
	// to is where a symlink leads, or the file in the same directory that a
	// hard link is another name of.
	to string
}

const (
	fileMode      = 0o644
	directoryMode = 0o755
	specialMode   = 0o600 // no usual umask takes any of it away
)

// bytes are the bytes of a file.
func (e entry) bytes() io.Reader {
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], e.key)
	return io.LimitReader(rand.NewChaCha8(seed), e.size)
}

// String names the entry in errors.
func (e entry) String() string {
	return fmt.Sprintf("%s %s", e.kind, shown(append(slices.Clip(e.in), e.name)))
}

// shown is a path for people: quoted, as it may contain anything, and without
// its middle, as it may be very long.
func shown(path []string) string {
	const most = 100
	s := strings.Join(path, "/")
	if len(s) > 2*most {
		return fmt.Sprintf("%q...%q", s[:most], s[len(s)-most:])
	}
	return fmt.Sprintf("%q", s)
}
