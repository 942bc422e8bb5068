package fakedriver

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// escape does what a deletion must not do, if that is the bug: it deletes what
// is not the volume's. It harms nothing but what is in Config.Outside.
func (r *run) escape(data string) {
	if r.cfg.Outside == "" {
		return
	}
	switch r.cfg.Bug {
	case FollowsLinks:
		_ = filepath.WalkDir(data, func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.Type() == fs.ModeSymlink && path != data {
				r.damage(path)
			}
			return nil
		})
	case EntersMounts:
		mounts, _ := mountsBelow(data)
		for _, mount := range mounts {
			r.damage(mount)
		}
	case FollowsVolumeLink:
		if info, err := os.Lstat(data); err == nil && info.Mode().Type() == fs.ModeSymlink {
			r.damage(data)
		}
	}
}

// damage deletes what a path leads to, as far as it is in Config.Outside.
func (r *run) damage(path string) {
	victim, err := os.Stat(path)
	if err != nil {
		return
	}
	_ = filepath.WalkDir(r.cfg.Outside, func(inside string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		info, err := e.Info()
		switch {
		case err != nil || !os.SameFile(victim, info):
			return nil
		case !e.IsDir():
			_ = os.Remove(inside)
		case strings.HasPrefix(inside, r.cfg.Outside):
			_ = emptyDir(inside)
		}
		return fs.SkipAll
	})
}

// doomed is a path in the queue of a driver that asks no more what it leads to.
type doomed struct {
	path  string
	since time.Time
}

func (r *run) doom(path string, since time.Time) {
	r.Driver.mu.Lock()
	defer r.Driver.mu.Unlock()
	r.doomed = append(r.doomed, doomed{path, since})
}

// reap deletes what is doomed and due. Like all of its kind it harms nothing but the working
// directory and what is in Config.Outside.
func (r *run) reap() {
	r.Driver.mu.Lock()
	defer r.Driver.mu.Unlock()
	r.doomed = slices.DeleteFunc(r.doomed, func(d doomed) bool {
		if time.Since(d.since) < r.cfg.Lifespan {
			return false
		}
		if mounts, err := mountsBelow(d.path); err != nil || len(mounts) > 0 {
			return true
		}
		if within, err := filepath.Rel(r.cfg.Work, d.path); err != nil || !filepath.IsLocal(within) {
			r.damage(d.path)
			return true
		}
		entries, _ := filepath.Glob(filepath.Join(d.path, "[^.]*"))
		for _, entry := range entries {
			_ = removeAll(entry) // what is left is no loss
		}
		return true
	})
}

// leads reports whether a volume ID is one that the driver takes for a path.
func (r *run) leads(id string) bool {
	switch r.cfg.Bug {
	case FollowsID:
		return strings.HasPrefix(filepath.Clean(id), "..") && !strings.Contains(id, "\x00")
	case TakesDot:
		return id == "."
	}
	return false
}

// emptyDir deletes what is in a directory.
func emptyDir(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, removeAll(filepath.Join(dir, e.Name())))
	}
	return err
}

// removeAll deletes a tree, also where pods took their own permissions away.
func removeAll(path string) error {
	if os.RemoveAll(path) == nil {
		return nil
	}
	_ = filepath.WalkDir(path, func(p string, e fs.DirEntry, err error) error {
		if e != nil && e.IsDir() {
			_ = os.Chmod(p, 0o700)
		}
		return nil
	})
	return os.RemoveAll(path)
}
