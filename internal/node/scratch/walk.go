package scratch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/beneath"
)

// Walk calls fn for every directory that may be a data directory, in no order. It skips names that
// are not <pod UID>/<volume ID>, files and symbolic links. fn may create and discard data
// directories; Walk may or may not reach a new one. It removes the directory of a kubelet's pod that is empty: a power cut
// may leave one, whose volume and record are not on the disk yet.
//
// If fn returns an error or ctx ends, Walk ends and returns that error as it is. It skips a pod's
// directory that cannot be read, and returns that error after the rest.
func (d *Dir) Walk(ctx context.Context, fn func(volume.Place) error) error {
	fd, err := beneath.Reopen(d.fd())
	if err != nil {
		return fmt.Errorf("read %s: %w", d.root, err)
	}
	defer unix.Close(fd)
	var unreadable faults
	for name, err := range eachName(fd) {
		if err != nil {
			return err
		}
		pod, invalid := volume.ParsePodUID("pod UID", name)
		if invalid != nil {
			continue
		}
		if err := d.walkPod(ctx, pod, fn, &unreadable); err != nil {
			return err
		}
	}
	return unreadable.err()
}

func (d *Dir) walkPod(ctx context.Context, pod volume.PodUID, fn func(volume.Place) error, unreadable *faults) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	fd, err := d.opener.Directory(d.fd(), string(pod))
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.EXDEV):
		return nil
	case err != nil:
		unreadable.add(fmt.Errorf("open %s/%s: %w", d.root, pod, err))
		return nil
	}
	defer unix.Close(fd)
	isEmpty := true
	for name, err := range eachName(fd) {
		if err != nil {
			unreadable.add(fmt.Errorf("read %s/%s: %w", d.root, pod, err))
			return nil
		}
		isEmpty = false
		id, invalid := volume.ParseID("volume ID", name)
		if invalid != nil || !isDirectory(fd, name) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := fn(volume.Place{Pod: pod, ID: id}); err != nil {
			return err
		}
	}
	if isEmpty && pod.FromKubelet() {
		d.removePod(string(pod)) // which a volume that is made meanwhile makes again
	}
	return nil
}

// Foreign looks for other people's data in a directory that is about to become a working directory.
// It returns the path of something two levels below root that is not named as a kubelet names pods
// and their volumes, or of a mount at the place of a pod's directory. It returns "" when there is
// none, and when root does not exist or has been a working directory before. It skips files at the
// top, names that begin with a dot and lost+found. It changes nothing.
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
	if d.opener, err = beneath.New(d.fd()); err != nil {
		return "", fmt.Errorf("mount of working directory %s: %w", root, err)
	}
	for name, err := range eachName(d.fd()) {
		var foreign string
		if pod, invalid := volume.ParsePodUID("pod UID", name); err == nil && invalid == nil {
			foreign, err = d.foreignIn(pod)
		}
		if err != nil {
			return "", fmt.Errorf("look through working directory %s: %w", root, err)
		}
		if foreign != "" {
			return foreign, nil
		}
	}
	return "", nil
}

// foreignIn looks into a directory that may be a pod's.
func (d *Dir) foreignIn(pod volume.PodUID) (foreign string, err error) {
	fd, err := d.opener.Directory(d.fd(), string(pod))
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		return "", nil
	case errors.Is(err, unix.EXDEV):
		return string(pod), nil
	case err != nil:
		return "", fmt.Errorf("open %s: %w", pod, err)
	}
	defer unix.Close(fd)
	for name, err := range eachName(fd) {
		if err != nil || !pod.FromKubelet() || !volume.ID(name).FromKubelet() {
			return filepath.Join(string(pod), name), err
		}
	}
	return "", nil
}
