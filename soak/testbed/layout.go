package testbed

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/katbox/katbox/soak/internal/host"
	"github.com/katbox/katbox/soak/internal/launch"
)

// Node is what the daemon calls the node that it is on.
const Node = "node-1"

// DaemonPod is the UID of the daemon's own pod, which has no volumes of it. It is on every node, so the
// kubelet's pods directory is never empty: without any pod the daemon doubts that it looks at the right one.
const DaemonPod = "00000000-0000-4000-8000-000000c0ffee"

// maxSocketPath is the longest address of a Unix socket that Linux accepts.
const maxSocketPath = 107

// Layout is where a node has everything: below one directory.
type Layout struct {
	Dir string
	// Created says that Dir was not there before.
	Created bool
	// Socket is where the daemon listens, and Admin its socket for people, which is beside it.
	Socket, Admin string
	// Work is the daemon's working directory. A [host.Disk] may be mounted there, and Image is the file that
	// one on a loop device keeps its blocks in.
	Work, Image string
	// Kubelet is the kubelet's root directory, the one with pods in it.
	Kubelet string
	// Canaries is for [host.MakeCanaries]. Nothing else may change anything there.
	Canaries string
	// Log is the file for the daemon's log.
	Log string
}

// At names what a node has in a directory, and makes nothing.
func At(dir string) Layout {
	at := func(name string) string { return filepath.Join(dir, name) }
	return Layout{
		Dir: dir, Socket: at("csi.sock"), Admin: at("admin.sock"), Work: at("work"), Image: at("disk.img"),
		Kubelet: at("kubelet"), Canaries: at("canaries"), Log: at("katbox.log"),
	}
}

// Pods is the kubelet's directory of pods.
func (l Layout) Pods() string { return filepath.Join(l.Kubelet, "pods") }

// Make makes the daemon's working directory and the kubelet's directories, if they are not there yet.
func (l Layout) Make() error {
	for _, dir := range []string{l.Work, filepath.Join(l.Pods(), DaemonPod)} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("make a directory of the node: %w", err)
		}
	}
	return nil
}

// Flags is a command line of the daemon that tells it where it is, and more.
func (l Layout) Flags(more ...string) []string {
	return append([]string{"--nodeid", Node, "--endpoint", "unix://" + l.Socket, "--workdir", l.Work, "--kubelet-dir", l.Kubelet}, more...)
}

// MakeLayout makes the directories of a run, in the named directory or, when
// dir is empty, in a temporary one. The directory has to be empty or new; the
// error wraps [launch.ErrUsage] when it will not do. Parents are made as needed. All
// paths are absolute and free of symlinks.
func MakeLayout(dir, logName string) (Layout, error) {
	if logName == "" || logName == "." || logName == ".." || strings.ContainsRune(logName, '/') {
		return Layout{}, fmt.Errorf("%w: the log's name %q has to be a plain file name", launch.ErrUsage, logName)
	}
	root, created, err := rootOfRun(dir)
	if err != nil {
		return Layout{}, err
	}
	l := At(root)
	l.Created, l.Log = created, filepath.Join(root, logName)
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
		return "", false, fmt.Errorf("%w: make the directory of the run: %w; name another --dir", launch.ErrUsage, err)
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return "", false, fmt.Errorf("directory of the run: %w", err)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return "", false, fmt.Errorf("directory of the run: %w", err)
	}
	if len(entries) > 0 {
		return "", false, fmt.Errorf("%w: --dir %s is not empty; name a new directory", launch.ErrUsage, path)
	}
	return path, created, nil
}

// fill checks the paths and makes the directories.
func (l Layout) fill() error {
	// It is the longer one.
	if len(l.Admin) > maxSocketPath {
		return fmt.Errorf("%w: %s is too long for a socket's path; name a shorter --dir", launch.ErrUsage, l.Admin)
	}
	for _, path := range []string{l.Socket, l.Admin, l.Work, l.Kubelet, l.Canaries, l.Image} {
		if l.Log == path {
			return fmt.Errorf("%w: the log cannot be called %q, that is something else's name here", launch.ErrUsage, filepath.Base(path))
		}
	}
	if err := os.Mkdir(l.Canaries, 0o755); err != nil {
		return fmt.Errorf("make a directory of the run: %w", err)
	}
	return l.Make()
}

// Remove takes everything away again, and the directory itself if it was not
// there before. It refuses, and removes nothing, while there is a mount below:
// what is mounted belongs to another program.
func (l Layout) Remove() error {
	mounts, err := host.MountsBelow(l.Dir)
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
