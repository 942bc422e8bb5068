package tarball

import (
	"time"

	"github.com/katbox/katbox/internal/node/files"
)

// maxLinks bounds what is remembered of files with several names, in bytes: a pod can make as many as
// the file system has inodes.
const maxLinks = 1 << 20

// links finds other names of files that the archive has.
type links struct {
	known map[fileID]known
	bytes int
}

// fileID is a file. Inodes of different subvolumes of a btrfs may have the same number.
type fileID struct {
	inode, links uint64
	size         int64
	modified     time.Time
}

// known is a file that the archive has, under the name of its first entry.
type known struct {
	name string
	// left is how many other names it still has.
	left uint64
}

// size is about what k takes in memory, with its place in the map.
func (k known) size() int { return len(k.name) + 128 }

// find returns the first name of a file, and remembers the one at hand if it is the first.
func (l *links) find(e files.Entry, name string) (first string, ok bool) {
	if e.Links < 2 {
		return "", false
	}
	id := fileID{e.Inode, e.Links, e.Size, e.ModTime.UTC()}
	if k, ok := l.known[id]; ok {
		k.left--
		l.known[id] = k
		if k.left == 0 {
			delete(l.known, id)
			l.bytes -= k.size()
		}
		return k.name, true
	}
	k := known{name, e.Links - 1}
	if l.bytes+k.size() > maxLinks {
		return "", false
	}
	if l.known == nil {
		l.known = map[fileID]known{}
	}
	l.known[id] = k
	l.bytes += k.size()
	return "", false
}
