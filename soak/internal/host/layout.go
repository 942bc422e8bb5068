package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/katbox/katbox/soak/internal/workload"
)

// ErrUsage marks an error in what the user asked for: a directory that will not
// do, or a disk that makes no sense. Another try needs other words.
var ErrUsage = errors.New("wrong usage")

// maxSocketPath is the longest address of a Unix socket that Linux accepts.
const maxSocketPath = 107

// Layout is where a run keeps everything: below one directory. All paths are
// absolute and free of symlinks.
type Layout struct {
	Dir string
	// Created says that Dir was not there before.
	Created bool
	// Socket is where the daemon listens.
	Socket string
	// Admin is where the daemon's admin socket is: beside the other one.
	Admin string
	// Work is the daemon's working directory. [MakeDisk] mounts there.
	Work string
	// Kubelet is the kubelet's root directory, the one with pods in it.
	Kubelet string
	// Canaries is for [MakeCanaries]. Nobody else may change anything there.
	Canaries string
	// Log is the file for the daemon's log.
	Log string
	// Image is the file that a [Disk] on a loop device keeps its blocks in.
	Image string
}

// MakeLayout makes the directories of a run, in the named directory or, when
// dir is empty, in a temporary one. The directory has to be empty or new; the
// error wraps [ErrUsage] when it will not do. Parents are made as needed.
func MakeLayout(dir, logName string) (Layout, error) {
	var l Layout
	if logName == "" || logName == "." || logName == ".." || strings.ContainsRune(logName, '/') {
		return l, fmt.Errorf("%w: the log's name %q has to be a plain file name", ErrUsage, logName)
	}
	var err error
	if l.Dir, l.Created, err = rootOfRun(dir); err != nil {
		return Layout{}, err
	}
	l.Socket = filepath.Join(l.Dir, "csi.sock")
	l.Admin = filepath.Join(l.Dir, "admin.sock")
	l.Work = filepath.Join(l.Dir, "work")
	l.Kubelet = filepath.Join(l.Dir, "kubelet")
	l.Canaries = filepath.Join(l.Dir, "canaries")
	l.Image = filepath.Join(l.Dir, "disk.img")
	l.Log = filepath.Join(l.Dir, logName)
	if err := l.fill(); err != nil {
		// Whatever was made here is still empty.
		return Layout{}, errors.Join(err, l.Remove())
	}
	return l, nil
}

// rootOfRun makes the directory of a run where there is none, and resolves it:
// the daemon resolves its own paths, the paths in the mount table have no
// symlinks in them, and all these have to be comparable.
func rootOfRun(dir string) (resolved string, created bool, err error) {
	path := dir
	if path == "" {
		created = true
		if path, err = os.MkdirTemp("", "katbox-soak-"); err != nil {
			return "", false, fmt.Errorf("make a temporary directory: %w", err)
		}
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", false, fmt.Errorf("directory %s: %w", dir, err)
	}
	if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		created = true
	}
	if err := os.MkdirAll(path, 0o755); err != nil {
		return "", false, fmt.Errorf("%w: make the directory of the run: %w; name another --dir", ErrUsage, err)
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return "", false, fmt.Errorf("directory of the run: %w", err)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return "", false, fmt.Errorf("directory of the run: %w", err)
	}
	if len(entries) > 0 {
		return "", false, fmt.Errorf("%w: --dir %s is not empty; name a new directory", ErrUsage, path)
	}
	return path, created, nil
}

// fill checks the paths and makes the directories.
func (l Layout) fill() error {
	// It is the longer one.
	if len(l.Admin) > maxSocketPath {
		return fmt.Errorf("%w: %s is too long for a socket's path; name a shorter --dir", ErrUsage, l.Admin)
	}
	for _, path := range []string{l.Socket, l.Admin, l.Work, l.Kubelet, l.Canaries, l.Image} {
		if l.Log == path {
			return fmt.Errorf("%w: the log cannot be called %q, that is something else's name here", ErrUsage, filepath.Base(path))
		}
	}
	for _, dir := range []string{l.Work, filepath.Join(l.Kubelet, "pods", workload.DriverPod), l.Canaries} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("make a directory of the run: %w", err)
		}
	}
	return nil
}

// Remove takes everything away again, and the directory itself if it was not
// there before. It refuses, and removes nothing, while there is a mount below:
// what is mounted belongs to somebody else.
func (l Layout) Remove() error {
	mounts, err := MountsBelow(l.Dir)
	if err != nil {
		return fmt.Errorf("clean up: %w", err)
	}
	if len(mounts) > 0 {
		return fmt.Errorf("clean up %s: %s is still mounted (%d mounts in all); unmount it first",
			l.Dir, mounts[0].Point, len(mounts))
	}
	entries, err := os.ReadDir(l.Dir)
	if err != nil {
		return fmt.Errorf("clean up: %w", err)
	}
	for _, entry := range entries {
		if err := os.RemoveAll(filepath.Join(l.Dir, entry.Name())); err != nil {
			return fmt.Errorf("clean up: %w", err)
		}
	}
	if !l.Created {
		return nil
	}
	if err := os.Remove(l.Dir); err != nil {
		return fmt.Errorf("clean up: %w", err)
	}
	return nil
}
