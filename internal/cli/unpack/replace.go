package unpack

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"unicode/utf8"
)

// mayReplace returns an error if something has the name that has to stay.
func (u *unpacker) mayReplace(name string) error {
	there, err := u.tree.look(u.tree.here(), name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("stat: %w", err)
	case !u.replaces():
		return ErrExists
	case there.kind != 0 && there.kind != fs.ModeSymlink:
		return fmt.Errorf("it is neither a regular file nor a symbolic link: %w", ErrExists)
	}
	return nil
}

// replaces reports whether a name may be taken from what has it: the caller says so, or an earlier call has made it.
func (u *unpacker) replaces() bool { return u.Overwrite || u.Save != nil && u.tree.here().ours }

const (
	suffix = ".partial"
	// nameMax is how long a name may be in bytes, on nearly all file systems, and leastNameMax on all of them.
	nameMax, leastNameMax = 255, 128
	// maxPartials bounds the search for a name that is free.
	maxPartials = 1000
)

// makePartial makes something under a name that nothing has, and returns that name. In a call that can be gone on from
// it is one that only an earlier call has used.
func (u *unpacker) makePartial(name string, create func(partial string) error) (string, error) {
	if u.Save != nil {
		err := create(u.partial)
		if errors.Is(err, fs.ErrExist) {
			if err = u.tree.here().dir.remove(u.partial); err == nil {
				err = create(u.partial)
			}
		}
		return u.partial, err
	}
	longest := nameMax
	for i := 0; i < maxPartials; {
		end := suffix
		if i > 0 {
			end = fmt.Sprintf("%s.%d", suffix, i)
		}
		partial := shortened(name, longest-len(end)) + end
		err := create(partial)
		switch {
		case err == nil:
			return partial, nil
		case errors.Is(err, fs.ErrExist):
			i++
		case errors.Is(err, syscall.ENAMETOOLONG) && longest > leastNameMax:
			longest = leastNameMax
		default:
			return "", err
		}
	}
	return "", fmt.Errorf("there are %d files of the name %q already: %w", maxPartials, name+suffix, ErrExists)
}

// shortened returns the beginning of a name, of at most that many bytes. Some systems have no names with half
// a character.
func shortened(name string, most int) string {
	if len(name) <= most {
		return name
	}
	for end := most; end > most-utf8.UTFMax; end-- {
		if utf8.RuneStart(name[end]) {
			return name[:end]
		}
	}
	return name[:most]
}

// rename gives what makePartial made its name. Without Overwrite nothing loses that name, and what came
// there meanwhile stays.
func (u *unpacker) rename(partial, name string) error {
	dir := u.tree.here().dir
	err := dir.rename(partial, name, u.replaces())
	if errors.Is(err, errNotAtOnce) {
		if err = u.mayReplace(name); err == nil {
			err = dir.rename(partial, name, true)
		}
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrExist), errors.Is(err, ErrExists):
		if u.Save == nil {
			return fmt.Errorf("%q has all of it: %w", partial, ErrExists)
		}
		err = ErrExists
	}
	return errors.Join(err, dir.remove(partial))
}
