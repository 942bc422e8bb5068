package unpack

import (
	"archive/tar"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
)

// misfit is an error that says why the destination cannot have an entry, or not beside the others.
type misfit struct{ error }

func (m misfit) Unwrap() error { return m.error }

func misfitf(format string, values ...any) error { return misfit{fmt.Errorf(format, values...)} }

// errEnds is wrapped by errors after which nothing more can be unpacked.
var errEnds = errors.New("unpacking ends")

// ending is an error after which nothing more can be unpacked.
type ending struct{ error }

func (e ending) Unwrap() []error { return []error{e.error, errEnds} }

// refused reports whether an error is about one entry alone. What a file system can hold is its own matter: names,
// links, sizes, permissions. Its error numbers for that differ, so all are refusals but those that say that nothing more
// can be written.
func (u *unpacker) refused(err error) bool {
	switch {
	case errors.As(err, new(misfit)):
		return true
	case u.stream.failed != nil, errors.Is(err, errEnds), errors.Is(err, ErrUnsafe), errors.Is(err, tar.ErrHeader):
		return false
	case len(u.tree.levels) == 1 && errors.Is(err, syscall.EACCES):
		return false // The caller may write nothing here.
	}
	return ends(err) == nil
}

// ends returns an error only if nothing more can be written after it.
func ends(err error) error {
	if slices.ContainsFunc(fatal, func(fatal error) bool { return errors.Is(err, fatal) }) {
		return ending{err}
	}
	return nil
}

// timed counts an error of setting a time. The file is there, and many file systems keep no such time.
func (u *unpacker) timed(err error) error {
	if err != nil {
		u.report.Untimed++
	}
	return ends(err)
}

// LeftOutError says that everything was unpacked but some entries, since the destination refused them.
type LeftOutError struct {
	// Count is how many entries are missing; First are the first of them.
	Count int
	First []LeftOut
	// Exist is how many of them something that may not be replaced is in the way of.
	Exist int
}

// LeftOut is an entry that is missing, and why.
type LeftOut struct{ Name, Why string }

// Is reports whether an entry is missing for this reason.
func (e *LeftOutError) Is(target error) bool { return e.Exist > 0 && target == ErrExists }

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

// leftOut are the entries that the destination refused.
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
func (l *leftOut) add(name string, place []string, why error) error {
	l.Count++
	if errors.Is(why, ErrExists) {
		l.Exist++
	}
	if len(l.First) < mostShown {
		l.First = append(l.First, LeftOut{name, reason(why)})
	}
	if l.places == nil {
		l.places = map[string]struct{}{}
	}
	if l.places[strings.Join(place, "/")] = struct{}{}; len(l.places) > mostPlaces {
		return fmt.Errorf("more than %d names are left out, of which this is the last: %w", mostPlaces, why)
	}
	return nil
}

// reason is why an entry is left out. A name that is refused says itself which it is.
func reason(err error) string {
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		return fmt.Sprintf("here it cannot be made: %s", path.Err)
	}
	return err.Error()
}

// err is nil if nothing is left out.
func (l *leftOut) err() error {
	if l.Count == 0 {
		return nil
	}
	return &l.LeftOutError
}
