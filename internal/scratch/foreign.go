package scratch

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/kernel"
	"github.com/katbox/katbox/internal/mount"
	"github.com/katbox/katbox/internal/volume"
)

// errFound ends a search.
var errFound = errors.New("found")

// Foreign returns something that is where data directories are, two levels below
// root, or mounted where a pod's directory is, and is not named as a kubelet names
// pods and their volumes: other people's data. It returns "" when there is none, and
// when root does not exist, or has been a working directory before. Files at the top,
// names that begin with a dot and lost+found do not matter.
//
// It changes nothing, and is for a directory in which a daemon begins.
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

// foreignIn looks into what may be a pod's directory.
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
