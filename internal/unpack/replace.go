package unpack

import (
	"errors"
	"fmt"
	"io/fs"
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
	case !u.Overwrite:
		return ErrExists
	case there.kind != 0 && there.kind != fs.ModeSymlink:
		return fmt.Errorf("it is neither a regular file nor a symbolic link: %w", ErrExists)
	}
	return nil
}

const (
	suffix = ".partial"
	// nameMax is how long a name may be in bytes, on nearly all file systems.
	nameMax = 255
	// maxPartials bounds the search for a name that is free.
	maxPartials = 1000
)

// makePartial makes something under a name that nothing has, and returns that name.
func makePartial(name string, create func(partial string) error) (string, error) {
	for i := range maxPartials {
		end := suffix
		if i > 0 {
			end = fmt.Sprintf("%s.%d", suffix, i)
		}
		partial := shortened(name, nameMax-len(end)) + end
		err := create(partial)
		switch {
		case err == nil:
			return partial, nil
		case !errors.Is(err, fs.ErrExist):
			return "", fmt.Errorf("make %q: %w", partial, err)
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
	err := dir.rename(partial, name, u.Overwrite)
	if errors.Is(err, errNotAtOnce) {
		if err := u.mayReplace(name); err != nil {
			return err
		}
		err = dir.rename(partial, name, true)
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%q has all of it: %w", partial, ErrExists)
	case err != nil:
		return fmt.Errorf("rename %q: %w", partial, err)
	}
	return nil
}
