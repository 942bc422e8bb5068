package scratch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/kernel"
	"github.com/katbox/katbox/internal/mount"
	"github.com/katbox/katbox/internal/volume"
)

// Walk calls fn for every directory that may be a data directory, in no order. It skips
// names that are not <pod UID>/<volume ID>, files and symbolic links. fn may create and
// discard data directories; Walk may or may not reach a new one.
//
// If fn returns an error or ctx ends, Walk ends and returns that error as it is. It skips
// a pod's directory that cannot be read, and returns that error after the rest.
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
		if err != nil {
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

// errFound ends a search.
var errFound = errors.New("found")

// Foreign looks for other people's data in a directory that is about to become a working
// directory. It returns the path of something two levels below root that is not named as
// a kubelet names pods and their volumes, or of a mount at the place of a pod's directory.
// It returns "" when there is none, and when root does not exist or has been a working
// directory before. It skips files at the top, names that begin with a dot and lost+found.
//
// It changes nothing.
func Foreign(root string) (string, error) {
	dir, err := kernel.Open(root, unix.O_DIRECTORY)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("open working directory: %w", err)
	}
	defer dir.Close()
	d := &Dir{root: filepath.Clean(root), dir: dir}
	if isDirectory(d.fd(), trashName) {
		return "", nil
	}
	if d.mountID, err = mount.ID(d.fd()); err != nil {
		return "", fmt.Errorf("mount of working directory %s: %w", root, err)
	}
	var foreign string
	pods := names{fd: d.fd(), buf: newBuffer()}
	err = pods.each(func(name string) (err error) {
		if pod, invalid := volume.ParsePodUID("pod UID", name); invalid == nil {
			foreign, err = d.foreignIn(pod)
		}
		if err == nil && foreign != "" {
			err = errFound
		}
		return err
	})
	if err != nil && !errors.Is(err, errFound) {
		return "", fmt.Errorf("look through working directory %s: %w", root, err)
	}
	return foreign, nil
}

// foreignIn looks into a directory that may be a pod's.
func (d *Dir) foreignIn(pod volume.PodUID) (foreign string, err error) {
	fd, err := d.openChild(d.fd(), string(pod))
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		return "", nil
	case errors.Is(err, unix.EXDEV):
		return string(pod), nil
	case err != nil:
		return "", fmt.Errorf("open %s: %w", pod, err)
	}
	defer unix.Close(fd)
	volumes := names{fd: fd, buf: newBuffer()}
	err = volumes.each(func(name string) error {
		if pod.FromKubelet() && volume.ID(name).FromKubelet() {
			return nil
		}
		foreign = filepath.Join(string(pod), name)
		return errFound
	})
	if errors.Is(err, errFound) {
		err = nil
	}
	return foreign, err
}
