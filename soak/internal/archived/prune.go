package archived

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// prune deletes what is due, once in each interval. It asks neither whether that
// is mounted nor whether it was published again. There is no pressure: the disks
// of tests have room.
func (d *Driver) prune() {
	ticker := time.NewTicker(d.cfg.PruneInterval)
	defer ticker.Stop()
	for {
		select {
		case <-d.stop:
			return
		case <-ticker.C:
		}
		for _, e := range d.due() {
			if d.removeAll(e.dir) != nil {
				continue // the next time
			}
			_ = os.Remove(filepath.Dir(e.dir)) // it stays if anything is in there
			d.mu.Lock()
			d.queue = slices.DeleteFunc(d.queue, func(other entry) bool { return other.id == e.id })
			d.mu.Unlock()
		}
	}
}

func (d *Driver) due() (list []entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.queue {
		if time.Since(e.unpublished) >= d.cfg.Lifespan {
			list = append(list, e)
		}
	}
	return list
}

// removeAll deletes a tree as the archived driver does: into what is mounted in
// it, too. That is as far as the likeness goes: it refuses if anything in there
// is on another file system than that of the test.
func (d *Driver) removeAll(dir string) error {
	ground, err := device(d.cfg.Ground)
	if err != nil {
		return err
	}
	err = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil {
			return err
		}
		dev, err := device(path)
		if err == nil && dev != ground {
			err = fmt.Errorf("%s is not on the file system of the test", path)
		}
		return err
	})
	if err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// device is the file system that something is on.
func device(path string) (uint64, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return 0, &os.PathError{Op: "lstat", Path: path, Err: err}
	}
	return st.Dev, nil
}
