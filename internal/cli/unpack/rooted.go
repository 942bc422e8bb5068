package unpack

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"time"
)

// rooted is a folder of any system. An os.Root does not leave its directory, but it follows symbolic
// links within: what is opened is compared with what was there before, which was no link. It is given
// single names alone, no paths, except for hard links.
type rooted struct {
	root *os.Root
	// top is the directory to unpack into, and way the path from there.
	top *os.Root
	way string
}

// openRooted opens the directory to unpack into, which may be a symbolic link.
func openRooted(dir string) (folder, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return rooted{root: root, top: root}, nil
}

func (r rooted) enter(name string) (folder, error) {
	before, err := r.root.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case !before.IsDir():
		return nil, errNoDirectory
	}
	root, err := r.root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	opened, err := root.Stat(".")
	if err == nil && !os.SameFile(before, opened) {
		err = errNoDirectory
	}
	if err != nil {
		root.Close()
		return nil, err
	}
	return rooted{root: root, top: r.top, way: path.Join(r.way, name)}, nil
}

func (r rooted) makeDirectory(name string, mode fs.FileMode) error {
	return r.root.Mkdir(name, mode.Perm())
}

func (r rooted) list() ([]string, error) {
	dir, err := r.root.Open(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return dir.Readdirnames(-1)
}

func (r rooted) grant(name string) (before fs.FileMode, err error) {
	info, err := r.root.Lstat(name)
	switch {
	case err != nil:
		return 0, err
	case !info.IsDir():
		return 0, errNoDirectory
	}
	return info.Mode().Perm(), r.root.Chmod(name, info.Mode().Perm()|0o700)
}

func (r rooted) create(name string, mode fs.FileMode) (*os.File, error) {
	return r.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode.Perm())
}

// link takes the way from the top to both names. All that is on it was opened, and is no symbolic link.
// If one has come there since, what got the name is something else from below the top.
func (r rooted) link(name string, in folder, to string) error {
	from := in.(rooted)
	target, err := from.look(to)
	if err != nil {
		return err
	}
	if err := r.top.Link(path.Join(from.way, to), path.Join(r.way, name)); err != nil {
		return err
	}
	if made, err := r.look(name); err != nil || !made.same(target) {
		return errors.Join(errors.New("something moved what it links to"), err)
	}
	return nil
}

func (r rooted) symlink(name, to string) error { return r.root.Symlink(to, name) }

// rename without replacing is a second name, and then the end of the first.
func (r rooted) remove(name string) error { return r.root.Remove(name) }

func (r rooted) rename(name, to string, replace bool) error {
	if replace {
		return r.root.Rename(name, to)
	}
	switch err := r.root.Link(name, to); {
	case err == nil:
		return r.root.Remove(name)
	case errors.Is(err, fs.ErrExist):
		return err
	}
	return errNotAtOnce
}

func (r rooted) look(name string) (thing, error) { return described(r.root.Lstat(name)) }

func (r rooted) self() (thing, error) { return described(r.root.Stat(".")) }

func described(info fs.FileInfo, err error) (thing, error) {
	if err != nil {
		return thing{}, err
	}
	return thing{kind: info.Mode().Type(), info: info}, nil
}

// setTime leaves symbolic links alone, which it would follow.
func (r rooted) setTime(name string, modified time.Time) error {
	if what, err := r.look(name); err != nil || what.kind != 0 {
		return err
	}
	return r.root.Chtimes(name, time.Time{}, known(modified))
}

func (r rooted) complete(mode fs.FileMode, modified time.Time) error {
	return errors.Join(r.root.Chtimes(".", time.Time{}, known(modified)), r.restrict(mode))
}

func (r rooted) restrict(mode fs.FileMode) error {
	info, err := r.root.Stat(".")
	if err != nil {
		return err
	}
	if all := info.Mode().Perm(); all&mode.Perm() != all {
		return r.root.Chmod(".", all&mode.Perm())
	}
	return nil
}

func (r rooted) close() { r.root.Close() }

// known returns a time that all systems can hold.
func known(t time.Time) time.Time {
	first, last := time.Unix(0, 0), time.Date(2200, time.January, 1, 0, 0, 0, 0, time.UTC)
	switch {
	case t.Before(first):
		return first
	case t.After(last):
		return last
	}
	return t
}
