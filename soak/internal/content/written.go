package content

import (
	"io"
	"io/fs"
	"iter"
	"path"
	"slices"
	"strings"
	"time"
)

// Written is one thing in a volume, as a reader has to find it.
type Written struct {
	// Path leads to it from the volume's directory, with slashes. Depth is how many
	// elements it has.
	Path  string
	Depth int
	// Type is 0 for a regular file, or one of the type bits.
	Type fs.FileMode
	// Mode are the permission bits, with setuid and its like, of what is neither
	// a symlink nor a hard link.
	Mode uint32
	// Size and Links are those of a regular file, Target is that of a symlink.
	Size   int64
	Links  int
	Target string
	// Sparse says that the file is nearly all hole.
	Sparse bool

	entry  entry
	marker string
}

// types are the type bits of what is no regular file.
var types = map[kind]fs.FileMode{
	directory: fs.ModeDir, symlink: fs.ModeSymlink, fifo: fs.ModeNamedPipe, socket: fs.ModeSocket,
}

// Written returns everything that [Fill] wrote, the marker first.
func (s Spec) Written(filled Filled) iter.Seq[Written] {
	return func(yield func(Written) bool) {
		marker := s.marker()
		if filled.Marker && !yield(Written{
			Path: MarkerName, Depth: 1, Mode: fileMode, Size: int64(len(marker)), Links: 1, marker: marker,
		}) {
			return
		}
		names := s.linkCounts(filled.Entries)
		// Hard links are in the directory of the file that they are another name of,
		// and come after it.
		linked := make(map[string]entry)
		i := 0
		for e := range s.entries() {
			if i == filled.Entries {
				return
			}
			i++
			if names[e.name] > 0 {
				linked[e.name] = e
			}
			if !yield(written(e, linked[e.to], names)) {
				return
			}
		}
	}
}

// written describes an entry, which may be another name of a file.
func written(e, of entry, names map[string]int) Written {
	w := Written{
		Path: path.Join(append(slices.Clip(e.in), e.name)...), Depth: len(e.in) + 1,
		Type: types[e.kind], Mode: e.mode, Size: e.size, Sparse: e.kind == sparse, entry: e,
	}
	switch e.kind {
	case symlink:
		w.Target = e.to
	case hardlink:
		w.Mode, w.Size, w.Links, w.entry = of.mode, of.size, 1+names[of.name], of
	case file, sparse:
		w.Links = 1 + names[e.name]
	}
	return w
}

// Bytes are those of a regular file from an offset on, at most n of them.
func (w Written) Bytes(offset, n int64) io.Reader {
	n = max(0, min(n, w.Size-offset))
	var all io.Reader
	switch {
	case w.marker != "":
		all = strings.NewReader(w.marker)
	case w.Sparse:
		return io.LimitReader(w.sparse(offset), n)
	default:
		all = w.entry.bytes()
	}
	// What cannot be skipped has fewer bytes than wanted, and so differs.
	_, _ = io.CopyN(io.Discard, all, offset)
	return io.LimitReader(all, n)
}

// sparse are the bytes of a sparse file from an offset on.
func (w Written) sparse(offset int64) io.Reader {
	before := w.Size / 2
	island := w.entry.island()
	if offset > before {
		_, _ = io.CopyN(io.Discard, island, offset-before) // the end of the island is no error
	}
	return io.MultiReader(io.LimitReader(zeros{}, max(0, before-offset)), island, zeros{})
}

// zeros are the bytes of a hole.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// Accessed is when a file of a volume was last read, as the file system noted.
func Accessed(dir, name string) (time.Time, error) {
	w, err := newWalker(dir)
	if err != nil {
		return time.Time{}, err
	}
	defer w.close()
	elements := strings.Split(name, "/")
	last := len(elements) - 1
	if err := w.enter(elements[:last]); err != nil {
		return time.Time{}, err
	}
	st, err := w.stat(elements[last])
	return time.Unix(st.Atim.Unix()), err
}
