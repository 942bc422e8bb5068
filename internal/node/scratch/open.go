package scratch

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// mountInside wraps errors of opening a directory, and those of removing, in [ErrMountInside] if
// they come from a mount point.
func mountInside(err error) error {
	if errors.Is(err, unix.EXDEV) || errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("%w: %w", ErrMountInside, err)
	}
	return err
}

// notOurs wraps errors of opening, removing or moving a directory in [ErrNotOurs] if they say that a
// name is no plain directory of ours.
func notOurs(err error) error {
	switch {
	case errors.Is(err, unix.EXDEV), errors.Is(err, unix.EBUSY):
		return fmt.Errorf("%w: a mount point: %w", ErrNotOurs, err)
	case errors.Is(err, unix.ENOTDIR):
		return fmt.Errorf("%w: %w", ErrNotOurs, err)
	}
	return err
}
