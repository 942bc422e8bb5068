package unpack

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"unicode/utf8"
)

// system is what an archive is unpacked on.
type system struct {
	rules
	// open opens the directory to unpack into, which may be a symbolic link.
	open func(path string) (folder, error)
}

// rules say which names of a volume a system has, and what else of a file. What its file systems have is found out by trying.
type rules struct {
	// name returns why no file can have this name, and target why no symbolic link can point there. nil
	// and an empty reason refuse nothing.
	name, target func(string) (why string)
	// shortNames: a file may have a second name, such as LONGNA~1.TXT.
	shortNames bool
	// noModes: files have no permissions of Unix.
	noModes bool
}

// check returns a misfit for the first of the elements that is none of this system, and its place.
func (r rules) check(elements []string) (place int, err error) {
	if r.name == nil {
		return 0, nil
	}
	for i, name := range elements {
		if why := r.name(name); why != "" {
			return i, misfitf("%s", why)
		}
	}
	return 0, nil
}

// checkTarget returns a misfit for the target of a symbolic link.
func (r rules) checkTarget(target string) error {
	if r.target == nil {
		return nil
	}
	if why := r.target(target); why != "" {
		return misfitf("it points to %q, and %s", target, why)
	}
	return nil
}

// mode returns the permissions that a file or directory gets.
func (r rules) mode(archived int64) fs.FileMode {
	if r.noModes {
		return 0o777
	}
	return fs.FileMode(archived) & 0o777
}

// names are those that the archive brought to a directory, by what two names that are one have in common.
type names map[key][]string

// key is what names are folded to, or else the file that has them.
type key struct {
	folded   string
	dev, ino uint64
}

// keys returns those of a name that a thing has. Folding alone does not know every file system: a FAT takes "a." for "a",
// and gives each file a short name too. The file alone does not do either: some file systems number what they are asked for.
func keys(name string, is thing) []key {
	keys := []key{{folded: fold(name)}}
	if is.info == nil {
		keys = append(keys, key{dev: is.dev, ino: is.ino})
	}
	return keys
}

// note remembers a name of the archive, unless the directory tells all names apart that are not the same.
func (r rules) note(l *level, name string) {
	if r.distinct(l, name) {
		return
	}
	is, err := l.dir.look(name)
	if err != nil {
		return // It was moved, and is in nothing's way.
	}
	if other := otherCase(name); !l.distinct && other != name {
		_, err := l.dir.look(other)
		l.distinct = errors.Is(err, fs.ErrNotExist)
	}
	if l.names == nil {
		l.names = names{}
	}
	for _, k := range keys(name, is) {
		if !slices.Contains(l.names[k], name) {
			l.names[k] = append(l.names[k], name)
		}
	}
}

// look describes what has a name. The error is a misfit if that is there under another name, which
// the archive brought.
func (r rules) look(l *level, name string) (thing, error) {
	there, err := l.dir.look(name)
	if err != nil || r.distinct(l, name) {
		return there, err
	}
	var brought []string
	for _, k := range keys(name, there) {
		brought = append(brought, l.names[k]...)
	}
	if slices.Contains(brought, name) {
		return there, nil
	}
	for _, other := range brought {
		if l.areOne(name, there, other) {
			return thing{}, misfitf("here it has the same name as %q, which was unpacked before", other)
		}
	}
	if r.shortNames && isShortName(name) {
		return thing{}, misfitf("here it may be the short name of another file")
	}
	if !l.ours {
		return there, nil
	}
	// Nothing but this copy writes here: its own name, or that of another entry.
	if exact, err := l.lists(name); err != nil || !exact {
		return thing{}, misfit{errors.Join(errors.New("here it has the same name as another entry, which was unpacked before"), err)}
	}
	return there, nil
}

// areOne reports whether a thing has another name too. Some file systems give each spelling of a name a file number of its
// own, so only a list shows that there are two.
func (l *level) areOne(name string, there thing, other string) bool {
	is, err := l.dir.look(other)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if err == nil && is.same(there) {
		return true
	}
	all, err := l.dir.list()
	return err != nil || !slices.Contains(all, name) || !slices.Contains(all, other)
}

// distinct reports whether no other name in a directory is this one.
func (r rules) distinct(l *level, name string) bool {
	return l.distinct && isASCII(name) && (!r.shortNames || !isShortName(name))
}

// lists reports whether a directory had this very name when that was first asked.
func (l *level) lists(name string) (bool, error) {
	if l.listed == nil {
		all, err := l.dir.list()
		if err != nil {
			return false, err
		}
		l.listed = make(map[string]struct{}, len(all))
		for _, name := range all {
			l.listed[name] = struct{}{}
		}
	}
	_, ok := l.listed[name]
	return ok, nil
}

func isASCII(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool { return r >= utf8.RuneSelf })
}

// otherCase returns a name with the case of its ASCII letters swapped.
func otherCase(name string) string {
	b := []byte(name)
	for i, c := range b {
		if lower := c | 0x20; 'a' <= lower && lower <= 'z' {
			b[i] = c ^ 0x20
		}
	}
	return string(b)
}
