package unpack

import (
	"archive/tar"
	"errors"
	"fmt"
	"io/fs"
)

// maxOpen is how many directories are held open above each other.
const maxOpen = 64

// tree is the directory that the archive is in now, and those above it. It closes those above the
// lowest maxOpen, and finds them again on the way back.
type tree struct {
	rules
	// ours: nothing but this copy writes below the directory. enters, if not nil, is called for a directory that an
	// earlier call has made.
	ours   bool
	enters func(folder)
	// grants: the permissions of directories that exist may be widened for a time.
	grants bool
	// untimed counts directories whose times could not be set.
	untimed int
	// levels begin with the directory to unpack into, which the caller closes.
	levels []level
}

// level is a directory.
type level struct {
	name string
	// dir is nil while the directory is closed. Then was says which it was.
	dir folder
	was thing
	// ours: nothing but this copy writes here. Then header is what the archive says about the directory, once it has.
	ours   bool
	header *tar.Header
	// granted: before are the permissions that it gets back.
	granted bool
	before  fs.FileMode
	// names are those that the archive brought, and listed those that were there when that was first asked. distinct
	// says that two names here are one only if they are not ASCII.
	names    names
	listed   map[string]struct{}
	distinct bool
}

// here is the directory that the archive is in.
func (t *tree) here() *level { return &t.levels[len(t.levels)-1] }

// enter goes to the directory of the given elements. Directories that are missing are made.
func (t *tree) enter(elements []string) error { return t.enterAs(elements, 0o777) }

// enterAs is enter with the permissions of the last directory, if it has to be made.
func (t *tree) enterAs(elements []string, mode fs.FileMode) error {
	same := 0
	for same < len(elements) && same+1 < len(t.levels) && t.levels[same+1].name == elements[same] {
		same++
	}
	for len(t.levels) > same+1 {
		if err := t.leave(); err != nil {
			return err
		}
	}
	for i, name := range elements[same:] {
		as := fs.FileMode(0o777)
		if same+i == len(elements)-1 {
			as = mode
		}
		if err := t.descend(name, as); err != nil {
			return err
		}
	}
	return nil
}

// directory is enter for a directory that the archive says something about.
func (t *tree) directory(elements []string, h *tar.Header) error {
	if err := t.enterAs(elements, t.mode(h.Mode)|0o700); err != nil {
		return err
	}
	t.here().header = h
	return nil
}

// descend goes to a directory in the present one, and makes it if it does not exist.
func (t *tree) descend(name string, mode fs.FileMode) error {
	above := t.here()
	err := above.dir.makeDirectory(name, mode)
	made := err == nil
	below := level{name: name, ours: made || t.ours}
	if errors.Is(err, fs.ErrExist) {
		_, err = t.look(above, name)
	}
	if err != nil {
		return fmt.Errorf("directory %q cannot be made: %w", name, err)
	}
	if t.grants && !made {
		below.before, err = above.dir.grant(name)
		below.granted = err == nil
	}
	below.dir, err = above.dir.enter(name)
	switch {
	case errors.Is(err, errNoDirectory):
		return fmt.Errorf("%q is in the way and is no directory: %w", name, ErrExists)
	case err != nil:
		return fmt.Errorf("directory %q cannot be opened: %w", name, err)
	}
	if !made && t.enters != nil {
		t.enters(below.dir)
	}
	t.note(above, name)
	t.levels = append(t.levels, below)
	// The first one is the caller's.
	far := len(t.levels) - 1 - maxOpen
	if far < 1 || t.levels[far].dir == nil {
		return nil
	}
	return t.levels[far].rest()
}

// rest closes a directory until those below it are done.
func (l *level) rest() (err error) {
	if l.was, err = l.dir.self(); err != nil {
		return ending{fmt.Errorf("stat %q: %w", l.name, err)}
	}
	l.dir.close()
	l.dir = nil
	return nil
}

// leave goes to the directory above, after it has given the present one its mode and time.
func (t *tree) leave() error {
	last := len(t.levels) - 1
	if t.levels[last-1].dir == nil {
		if err := t.reopen(last - 1); err != nil {
			return err
		}
	}
	here := t.levels[last]
	t.levels = t.levels[:last]
	defer here.dir.close()
	err := error(nil)
	switch {
	case here.ours && here.header != nil:
		err = here.dir.complete(t.mode(here.header.Mode), here.header.ModTime)
	case here.granted:
		// What existed before stays as it is.
		err = here.dir.restrict(here.before)
	}
	if err == nil {
		return nil
	}
	t.untimed++
	return ends(fmt.Errorf("directory %q: %w", here.name, err))
}

// reopen opens a level again, and those above it that are closed, up to maxOpen. The way there is that
// from the top.
func (t *tree) reopen(last int) error {
	dir := t.levels[0].dir
	for i := 1; i <= last; i++ {
		l := &t.levels[i]
		next, err := dir.enter(l.name)
		if i > 1 && t.levels[i-1].dir == nil {
			dir.close()
		}
		if err == nil {
			var is thing
			if is, err = next.self(); err != nil || !is.same(l.was) {
				next.close()
				err = errors.Join(errors.New("it is another one"), err)
			}
		}
		if err != nil {
			return ending{fmt.Errorf("open directory %q again: something was moved: %w", l.name, err)}
		}
		if dir = next; i > last-maxOpen {
			l.dir = dir
		}
	}
	return nil
}

// finish leaves all directories.
func (t *tree) finish() error { return t.enter(nil) }

// pause leaves all directories for a later call that goes on in them.
func (t *tree) pause() error {
	for _, l := range t.levels {
		if l.header != nil {
			l.header.Mode |= 0o700
		}
	}
	return t.finish()
}

// close closes what is still open, except the first.
func (t *tree) close() {
	for _, l := range t.levels[1:] {
		if l.dir != nil {
			if l.granted {
				_ = l.dir.restrict(l.before) // There is an error already.
			}
			l.dir.close()
		}
	}
	t.levels = t.levels[:1]
}
