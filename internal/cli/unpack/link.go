package unpack

import (
	"errors"
	"fmt"
)

// link makes a hard link to a file that the archive names.
func (u *unpacker) link(name string, e *entry) error {
	if err := u.mayReplace(name); err != nil {
		return err
	}
	to := e.Linkname
	elements, err := split(to)
	if err != nil {
		return fmt.Errorf("link to %q: %w", to, err)
	}
	if _, err := u.tree.check(elements); err != nil || u.without.has(elements) {
		return misfitf("it is another name of %q, which is left out", to)
	}
	target, err := u.find(elements)
	if err != nil {
		return fmt.Errorf("link to %q: %w", to, err)
	}
	defer target.close()
	dir := u.tree.here().dir
	if is, err := dir.look(name); u.replaces() && err == nil && is.same(target.thing) {
		// A rename between two links to one file does nothing, and both stay.
		return nil
	}
	partial, err := u.makePartial(name, func(partial string) error { return dir.link(partial, target.dir, target.name) })
	if err != nil {
		return fmt.Errorf("here it cannot be another name of %q: %w", to, err)
	}
	return u.rename(partial, name)
}

// found is a file with a name in an open directory.
type found struct {
	thing
	dir  folder
	name string
	// close closes the directory, unless it is the top.
	close func()
}

// find finds a regular file below the top.
func (u *unpacker) find(elements []string) (found, error) {
	last := len(elements) - 1
	dir, done := u.tree.levels[0].dir, func() {}
	for _, e := range elements[:last] {
		next, err := dir.enter(e)
		done()
		if errors.Is(err, errNoDirectory) {
			err = fmt.Errorf("%w: %w", err, ErrUnsafe)
		}
		if err != nil {
			return found{}, fmt.Errorf("open directory %q: %w", e, err)
		}
		dir, done = next, next.close
	}
	is, err := dir.look(elements[last])
	if err == nil && is.kind != 0 {
		err = fmt.Errorf("it is no regular file: %w", ErrUnsafe)
	}
	if err != nil {
		done()
		return found{}, err
	}
	return found{is, dir, elements[last], done}, nil
}

// symlink makes a symbolic link, which nothing here follows.
func (u *unpacker) symlink(name string, e *entry) error {
	if err := u.tree.checkTarget(e.Linkname); err != nil {
		return err
	}
	if err := u.mayReplace(name); err != nil {
		return err
	}
	dir := u.tree.here().dir
	partial, err := u.makePartial(name, func(partial string) error { return dir.symlink(partial, e.Linkname) })
	if err != nil {
		return fmt.Errorf("here it cannot be a symbolic link: %w", err)
	}
	if err := u.timed(dir.setTime(partial, e.ModTime)); err != nil {
		return err
	}
	return u.rename(partial, name)
}
