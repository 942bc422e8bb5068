package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// maxSocketPath is the longest address of a Unix socket that Linux accepts.
const maxSocketPath = 107

// layout is where a run keeps everything: below one directory.
type layout struct {
	dir     string
	created bool
	socket  string
	work    string
	kubelet string
	log     string
}

// makeLayout makes the directories of a run, in the named directory or in a
// temporary one.
func makeLayout(o options) (layout, error) {
	l := layout{dir: o.dir}
	var err error
	if l.dir == "" {
		l.created = true
		if l.dir, err = os.MkdirTemp("", "katbox-soak-"); err != nil {
			return l, fmt.Errorf("make a temporary directory: %w", err)
		}
	}
	// The daemon resolves its own paths; the paths in the mount table have no
	// symlinks in them, and the two have to be comparable.
	if l.dir, err = filepath.Abs(l.dir); err != nil {
		return l, fmt.Errorf("directory %s: %w", o.dir, err)
	}
	if _, err := os.Lstat(l.dir); os.IsNotExist(err) {
		l.created = true
	}
	if err := os.MkdirAll(l.dir, 0o755); err != nil {
		return l, fmt.Errorf("make the directory of the run: %w", err)
	}
	if l.dir, err = filepath.EvalSymlinks(l.dir); err != nil {
		return l, fmt.Errorf("directory of the run: %w", err)
	}
	entries, err := os.ReadDir(l.dir)
	if err != nil {
		return l, fmt.Errorf("directory of the run: %w", err)
	}
	if len(entries) > 0 {
		return l, fmt.Errorf("%w: --dir %s is not empty; name a new directory", errUsage, l.dir)
	}
	l.socket = filepath.Join(l.dir, "csi.sock")
	l.work = filepath.Join(l.dir, "work")
	l.kubelet = filepath.Join(l.dir, "kubelet")
	l.log = filepath.Join(l.dir, o.log)
	if len(l.socket) > maxSocketPath {
		return l, fmt.Errorf("%w: %s is too long for a socket's path; name a shorter --dir", errUsage, l.socket)
	}
	for _, dir := range []string{l.work, filepath.Join(l.kubelet, "pods")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return l, fmt.Errorf("make a directory of the run: %w", err)
		}
	}
	return l, nil
}

// remove takes everything away again, and the directory itself if it was not
// there before.
func (l layout) remove() error {
	entries, err := os.ReadDir(l.dir)
	if err != nil {
		return fmt.Errorf("clean up: %w", err)
	}
	for _, entry := range entries {
		if err := os.RemoveAll(filepath.Join(l.dir, entry.Name())); err != nil {
			return fmt.Errorf("clean up: %w", err)
		}
	}
	if !l.created {
		return nil
	}
	if err := os.Remove(l.dir); err != nil {
		return fmt.Errorf("clean up: %w", err)
	}
	return nil
}
