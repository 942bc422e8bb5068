package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach"
)

// Unmount takes away all mounts at target; that there is none is no error, see the package's comment. It is neither
// lazy nor forced: when a mount went and it returns nil, what was written through it has reached the disk or the server.
// The error is volume.ErrBusy while a process has a file open there.
func (t Tools) Unmount(target string) error { return wrap(unmount(target), "unmount %s", target) }

func unmount(target string) error {
	// More mounts at one path can only come from an endless loop.
	const most = 100
	for range most {
		table, err := attach.Table()
		if err != nil {
			return err
		}
		if _, ok := attach.At(table, target); !ok {
			return nil
		}
		switch err := kernel.Unmount(target); {
		case errors.Is(err, unix.EBUSY):
			return fmt.Errorf("%w: %s: %w", volume.ErrBusy, user(table, target), err)
		// It went meanwhile, if the table says so too.
		case err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	return fmt.Errorf("more than %d mounts are at the same path, or one cannot be taken away", most)
}

// user says what keeps a mount busy: a mount inside it, or else a process.
func user(table []attach.Mount, target string) string {
	for _, m := range table {
		if strings.HasPrefix(m.Target, target+"/") {
			return m.Target + " is mounted inside; unmount that on the node"
		}
	}
	return "a process uses what is mounted there"
}

// Remove removes the empty directory or the empty file at which a volume was mounted; that there is none is no
// error. The error is volume.ErrBusy while something is mounted there, and attach.ErrNotOurs if there is something in
// it.
func (t Tools) Remove(target string) error { return wrap(remove(target), "remove %s", target) }

func remove(target string) error {
	table, err := attach.Table()
	if err != nil {
		return err
	}
	// This comes first: a file system that hangs could be asked otherwise.
	if _, ok := attach.At(table, target); ok {
		return fmt.Errorf("%w: something is mounted there", volume.ErrBusy)
	}
	st, err := kernel.Lstatat(unix.AT_FDCWD, target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		err = kernel.Rmdir(target)
	case unix.S_IFREG:
		if st.Size != 0 {
			return fmt.Errorf("%w: it is a file with %d bytes", attach.ErrNotOurs, st.Size)
		}
		err = kernel.Remove(target)
	default:
		return fmt.Errorf("%w: it is neither a directory nor a file", attach.ErrNotOurs)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, unix.ENOTEMPTY):
		return fmt.Errorf("%w: %w", attach.ErrNotOurs, err)
	case errors.Is(err, unix.EBUSY):
		return fmt.Errorf("%w: %w", volume.ErrBusy, err)
	}
	return err
}
