package scratch

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/kernel"
	"github.com/katbox/katbox/internal/volume"
)

// lostAndFound is where fsck puts what it cannot place, at the top of a file
// system. No pod has that name.
const lostAndFound = "lost+found"

// Walk calls fn for everything that may be a data directory, in no order: whose
// it is, the caller has to find out. It passes over what is not <pod UID>/<volume ID>: names that begin with a dot, files, symbolic links
// and lost+found. fn may create and discard data directories; whether Walk still
// comes to a new one is open.
//
// An error of fn ends the walk and is returned as it is, an end of ctx likewise.
// A pod's directory that cannot be read does not end it; the error tells of it
// when the rest is done.
func (d *Dir) Walk(ctx context.Context, fn func(volume.Place) error) error {
	fd, err := reopen(d.fd())
	if err != nil {
		return fmt.Errorf("read %s: %w", d.root, err)
	}
	defer unix.Close(fd)
	var unreadable faults
	pods := names{fd: fd, buf: newBuffer()}
	err = pods.each(func(podName string) error {
		pod, err := volume.ParsePodUID("pod UID", podName)
		if err != nil || podName == lostAndFound {
			return nil
		}
		return d.walkPod(ctx, pod, fn, &unreadable)
	})
	if err != nil {
		return err
	}
	return unreadable.err()
}

func (d *Dir) walkPod(ctx context.Context, pod volume.PodUID, fn func(volume.Place) error, unreadable *faults) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	fd, err := d.openChild(d.fd(), string(pod))
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.EXDEV):
		return nil
	case err != nil:
		unreadable.add(fmt.Errorf("open %s/%s: %w", d.root, pod, err))
		return nil
	}
	defer unix.Close(fd)
	var stopped error
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	volumes := names{fd: fd, buf: *buf}
	err = volumes.each(func(name string) error {
		id, err := volume.ParseID("volume ID", name)
		if err != nil || !isDirectory(fd, name) {
			return nil
		}
		if stopped = ctx.Err(); stopped == nil {
			stopped = fn(volume.Place{Pod: pod, ID: id})
		}
		return stopped
	})
	if err != nil && stopped == nil {
		unreadable.add(fmt.Errorf("read %s/%s: %w", d.root, pod, err))
	}
	return stopped
}

// each calls fn for every name until it returns an error.
func (n *names) each(fn func(name string) error) error {
	for {
		batch, err := n.next()
		if err != nil || len(batch) == 0 {
			return err
		}
		for _, name := range batch {
			if err := fn(name); err != nil {
				return err
			}
		}
	}
}

// isDirectory tells whether name is a directory and no link to one. One that
// has just been removed is none.
func isDirectory(at int, name string) bool {
	var st unix.Stat_t
	err := kernel.IgnoreEINTR(func() error {
		return unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT)
	})
	return err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR
}
