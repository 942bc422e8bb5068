package unpack

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// mayReplace returns an error if something has the name that has to stay.
func (u *unpacker) mayReplace(dir int, name string) error {
	var st unix.Stat_t
	err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	kind := st.Mode & unix.S_IFMT
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil
	case err != nil:
		return fmt.Errorf("stat: %w", err)
	case !u.Overwrite:
		return ErrExists
	case kind != unix.S_IFREG && kind != unix.S_IFLNK:
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
		partial := name[:min(len(name), nameMax-len(end))] + end
		err := create(partial)
		switch {
		case err == nil:
			return partial, nil
		case !errors.Is(err, unix.EEXIST):
			return "", fmt.Errorf("make %q: %w", partial, err)
		}
	}
	return "", fmt.Errorf("there are %d files of the name %q already: %w", maxPartials, name+suffix, ErrExists)
}

// rename gives what makePartial made its name. Without Overwrite nothing loses that name, and what came
// there meanwhile stays.
func (u *unpacker) rename(dir int, partial, name string) error {
	err := retry(func() error {
		if u.Overwrite {
			return unix.Renameat(dir, partial, dir, name)
		}
		return unix.Renameat2(dir, partial, dir, name, unix.RENAME_NOREPLACE)
	})
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		// The file system cannot do it in one step.
		if err := u.mayReplace(dir, name); err != nil {
			return err
		}
		err = retry(func() error { return unix.Renameat(dir, partial, dir, name) })
	}
	switch {
	case errors.Is(err, unix.EEXIST):
		return fmt.Errorf("%q has all of it: %w", partial, ErrExists)
	case err != nil:
		return fmt.Errorf("rename %q: %w", partial, err)
	}
	return nil
}
