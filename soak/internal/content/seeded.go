package content

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
)

const (
	// mostFiles and mostBytes bound what one volume gets, whatever its
	// Content says: the churn is what a run is about, not the writing.
	mostFiles = 10_000
	mostBytes = 64 << 20
	// levels of levelName make a path of more than 6,000 bytes, and the kernel
	// takes 4,095 at once.
	levels        = 300
	levelName     = 20
	levelsPerFile = 50
	// wide is how many directories are beside one another.
	wide = 64
	// sparseSize is the size of the file that is nearly all hole.
	sparseSize = 1 << 30
)

// entries are everything that is in a volume beside its marker, in an order in
// which they can be made.
func (s Spec) entries() iter.Seq[entry] {
	c := s.Content
	return func(yield func(entry) bool) {
		random := rand.New(rand.NewPCG(c.Seed, 0))
		_ = s.files(random, yield) &&
			(!c.Names || named(random, yield)) &&
			(!c.Links || s.links(random, yield)) &&
			(!c.Modes || modes(random, yield)) &&
			(!c.Special || special(yield)) &&
			(!c.Sparse || yield(entry{name: "sparse", kind: sparse, mode: fileMode, size: sparseSize, key: random.Uint64()})) &&
			(!c.Deep || deep(random, yield))
	}
}

// files are plain ones.
func (s Spec) files(random *rand.Rand, yield func(entry) bool) bool {
	left := int64(mostBytes)
	for i := range min(s.Content.Files, mostFiles) {
		size := min(random.Int64N(max(s.Content.Bytes, 0)+1), left)
		left -= size
		name := fmt.Sprintf("file-%d-%016x", i, random.Uint64())
		if !yield(entry{name: name, mode: fileMode, size: size, key: random.Uint64()}) {
			return false
		}
	}
	return true
}

// oddNames are names that a program may take for something else: a shell, a
// terminal, a list with a name on each line, a driver that keeps files of its
// own.
var oddNames = []string{
	" ", " a blank before and after ", "two\nlines", "\n", "a\ttab", "\r", "-rf", "--", "-", `back\slash`, `\`,
	"*", "?[a-z]{1,2}", "'", `"`, "$(reboot)", "`reboot`", ";", "&", "|", "~", "#", "%s%n%00", "\x01\x1b[31m\x7f",
	"...", ".. ", ".hidden", ".trash", ".katbox.db", "lost+found", "mount", "\xff\xfe\x80", "e\u0301", "\u202e",
	strings.Repeat("n", 255), strings.Repeat("\xc3\xa9", 127),
}

// named are files and directories with odd names, with a file in each directory.
func named(random *rand.Rand, yield func(entry) bool) bool {
	for i, name := range oddNames {
		e := entry{name: name, mode: fileMode, size: int64(i), key: random.Uint64()}
		if i%2 == 0 {
			if !yield(e) {
				return false
			}
			continue
		}
		d := entry{name: name, kind: directory, mode: directoryMode}
		e.in = []string{name}
		if !yield(d) || !yield(e) {
			return false
		}
	}
	return true
}

// links are hard links, and symlinks to everywhere.
func (s Spec) links(random *rand.Rand, yield func(entry) bool) bool {
	const linked = "linked"
	list := []entry{{name: linked, mode: fileMode, size: 100, key: random.Uint64()}}
	for i := range 3 {
		list = append(list, entry{name: fmt.Sprintf("hard-%d", i), kind: hardlink, to: linked})
	}
	// File systems differ in how long a symlink may be; 1,000 bytes always fit.
	// None leads out of the directory of the run: a driver that is broken follows
	// them as root, and would take the machine down with it.
	for i, to := range []string{
		"nowhere/at/all", s.Outside, s.Outside + "/.", s.Outside + "/..", "..", "../..", "../../..", ".", linked, MarkerName,
		"link-10", "link-12", "link-11", // the first leads to itself, the others to one another
		strings.Repeat("x/", 500), s.Outside + "/../..",
	} {
		list = append(list, entry{name: fmt.Sprintf("link-%d", i), kind: symlink, to: to})
	}
	for _, e := range list {
		if !yield(e) {
			return false
		}
	}
	return true
}

// modes are permissions that stand in the way of everybody but root. Each
// directory has a file in it.
func modes(random *rand.Rand, yield func(entry) bool) bool {
	for _, mode := range []uint32{0, 0o111, 0o444, 0o1777, 0o2755, 0o4755, 0o6711} {
		name := fmt.Sprintf("mode-%04o", mode)
		f := entry{name: name + "-file", mode: mode, size: 10, key: random.Uint64()}
		d := entry{name: name, kind: directory, mode: mode}
		inside := entry{in: []string{name}, name: "inside", mode: fileMode, size: 10, key: random.Uint64()}
		if !yield(f) || !yield(d) || !yield(inside) {
			return false
		}
	}
	return true
}

// special are what a reader may wait for without end.
func special(yield func(entry) bool) bool {
	return yield(entry{name: "fifo", kind: fifo, mode: specialMode}) &&
		yield(entry{name: "socket", kind: socket, mode: specialMode})
}

// deep is a tree of many levels, with a file here and there and at the bottom,
// and one with many branches.
func deep(random *rand.Rand, yield func(entry) bool) bool {
	path := []string{"deep"}
	if !yield(entry{name: path[0], kind: directory, mode: directoryMode}) {
		return false
	}
	for i := 1; i <= levels; i++ {
		name := fmt.Sprintf("level-%0*d", levelName-len("level-"), i)
		if !yield(entry{in: path, name: name, kind: directory, mode: directoryMode}) {
			return false
		}
		path = append(path, name)
		if i%levelsPerFile == 0 && !yield(entry{in: path, name: "leaf", mode: fileMode, size: 10, key: random.Uint64()}) {
			return false
		}
	}
	for i := range wide {
		in := []string{"deep", fmt.Sprintf("branch-%d", i)}
		if !yield(entry{in: in[:1], name: in[1], kind: directory, mode: directoryMode}) ||
			!yield(entry{in: in, name: "leaf", mode: fileMode, size: 10, key: random.Uint64()}) {
			return false
		}
	}
	return true
}
