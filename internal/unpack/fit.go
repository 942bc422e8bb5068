package unpack

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// system is what an archive is unpacked on.
type system struct {
	rules
	// open opens the directory to unpack into, which may be a symbolic link.
	open func(path string) (folder, error)
}

// rules say which names of a volume a system has, and what else of a file. The zero rules are those of
// Linux, which has them all.
type rules struct {
	// name returns why no file can have this name, and target why no symbolic link can point there. nil
	// and an empty reason refuse nothing.
	name, target func(string) (why string)
	// fold returns what names have in common that may be one, since they differ in case alone, or in
	// how characters are composed. nil: no two names are one.
	fold func(name string) string
	// shortNames: a file may have a second name, such as LONGNA~1.TXT.
	shortNames bool
	// noModes: files have no permissions of Unix.
	noModes bool
}

// misfit is an error that says why this system cannot have an entry, or not beside the others.
type misfit string

func (m misfit) Error() string { return string(m) }

// check returns a misfit for the first of the elements that is none of this system, and its place.
func (r rules) check(elements []string) (place int, err error) {
	if r.name == nil {
		return 0, nil
	}
	for i, name := range elements {
		if why := r.name(name); why != "" {
			return i, misfit(why)
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
		return misfit(fmt.Sprintf("it points to %q, and %s", target, why))
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

// names are those that the archive brought to a directory, by what they are folded to.
type names map[string][]string

// note remembers a name of the archive.
func (r rules) note(l *level, name string) {
	if r.fold == nil {
		return
	}
	if l.names == nil {
		l.names = names{}
	}
	if key := r.fold(name); !slices.Contains(l.names[key], name) {
		l.names[key] = append(l.names[key], name)
	}
}

// look describes what has a name. The error is a misfit if that is there under another name, which
// the archive brought.
func (r rules) look(l *level, name string) (thing, error) {
	there, err := l.dir.look(name)
	if err != nil || r.fold == nil {
		return there, err
	}
	brought := l.names[r.fold(name)]
	if slices.Contains(brought, name) {
		return there, nil
	}
	for _, other := range brought {
		if is, err := l.dir.look(other); err == nil && is.same(there) {
			return thing{}, misfit(fmt.Sprintf("here it has the same name as %q, which was unpacked before", other))
		}
	}
	if r.shortNames && isShortName(name) {
		return thing{}, misfit("here it may be the short name of another file")
	}
	return there, nil
}

// LeftOutError says that everything was unpacked but some entries, since this system cannot have them.
type LeftOutError struct {
	// Count is how many entries are missing; First are the first of them.
	Count int
	First []LeftOut
}

// LeftOut is an entry that is missing, and why.
type LeftOut struct{ Name, Why string }

// Error names the first entries.
func (e *LeftOutError) Error() string {
	var all []string
	for _, l := range e.First {
		all = append(all, fmt.Sprintf("%q (%s)", l.Name, l.Why))
	}
	if e.Count > len(e.First) {
		all = append(all, "...")
	}
	if e.Count == 1 {
		return "all is there but 1 entry: " + all[0]
	}
	return fmt.Sprintf("all is there but %d entries: %s", e.Count, strings.Join(all, ", "))
}

const (
	// mostShown is how many entries a LeftOutError names.
	mostShown = 10
	// mostPlaces bounds how many names are remembered that are left out.
	mostPlaces = 10_000
)

// leftOut are the entries that this system cannot have.
type leftOut struct {
	LeftOutError
	// places are names and, if it is a directory, all that is in it.
	places map[string]struct{}
}

// has reports whether an entry is in a place that is left out.
func (l *leftOut) has(elements []string) bool {
	for i := range elements {
		if len(l.places) == 0 {
			return false
		}
		if _, ok := l.places[strings.Join(elements[:i+1], "/")]; ok {
			return true
		}
	}
	return false
}

// add leaves an entry out, and all that is below the place.
func (l *leftOut) add(name string, place []string, why string) error {
	l.Count++
	if len(l.First) < mostShown {
		l.First = append(l.First, LeftOut{name, why})
	}
	if l.places == nil {
		l.places = map[string]struct{}{}
	}
	if l.places[strings.Join(place, "/")] = struct{}{}; len(l.places) > mostPlaces {
		return fmt.Errorf("more than %d names do not fit on this system, of which this is the last: %s", mostPlaces, why)
	}
	return nil
}

// err is nil if nothing is left out.
func (l *leftOut) err() error {
	if l.Count == 0 {
		return nil
	}
	return &l.LeftOutError
}
