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
	// levels begin with the directory to unpack into, which the caller closes.
	levels []level
}

// level is a directory.
type level struct {
	name string
	// dir is nil while the directory is closed. Then was says which it was.
	dir folder
	was thing
	// made: it did not exist before. header is what the archive says about it, once it has.
	made   bool
	header *tar.Header
	names  names
}

// here is the directory that the archive is in.
func (t *tree) here() *level { return &t.levels[len(t.levels)-1] }

// enter goes to the directory of the given elements. Directories that are missing are made.
func (t *tree) enter(elements []string) error {
	same := 0
	for same < len(elements) && same+1 < len(t.levels) && t.levels[same+1].name == elements[same] {
		same++
	}
	for len(t.levels) > same+1 {
		if err := t.leave(); err != nil {
			return err
		}
	}
	for _, name := range elements[same:] {
		if err := t.descend(name); err != nil {
			return err
		}
	}
	return nil
}

// directory is enter for a directory that the archive says something about.
func (t *tree) directory(elements []string, h *tar.Header) error {
	if err := t.enter(elements); err != nil {
		return err
	}
	t.here().header = h
	return nil
}

// descend goes to a directory in the present one, and makes it if it does not exist.
func (t *tree) descend(name string) error {
	above := t.here()
	err := above.dir.makeDirectory(name)
	made := err == nil
	if errors.Is(err, fs.ErrExist) {
		_, err = t.look(above, name)
	}
	if err != nil {
		return fmt.Errorf("make directory %q: %w", name, err)
	}
	dir, err := above.dir.enter(name)
	switch {
	case errors.Is(err, errNoDirectory):
		return fmt.Errorf("%q is in the way and is no directory: %w", name, ErrExists)
	case err != nil:
		return fmt.Errorf("open directory %q: %w", name, err)
	}
	t.note(above, name)
	t.levels = append(t.levels, level{name: name, dir: dir, made: made})
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
		return fmt.Errorf("stat %q: %w", l.name, err)
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
	// What existed before stays as it is.
	if !here.made || here.header == nil {
		return nil
	}
	if err := here.dir.complete(t.mode(here.header.Mode), here.header.ModTime); err != nil {
		return fmt.Errorf("directory %q: %w", here.name, err)
	}
	return nil
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
			return fmt.Errorf("open directory %q again: something was moved: %w", l.name, err)
		}
		if dir = next; i > last-maxOpen {
			l.dir = dir
		}
	}
	return nil
}

// finish leaves all directories.
func (t *tree) finish() error { return t.enter(nil) }

// pause leaves all directories for a later call that goes on in them. What existed before stays as it is
// then, so their modes have to be right now.
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
			l.dir.close()
		}
	}
	t.levels = t.levels[:1]
}
