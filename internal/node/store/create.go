package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"

	"github.com/katbox/katbox/internal/lib/kernel"
)

// newSuffix marks a store that is not complete yet.
const newSuffix = ".new"

// create makes an empty store at path, unless there is a file already. Whatever has the name was
// complete once, so an empty or unreadable file is known to be damaged, and never taken for a first
// start. Opening it makes the name durable.
func create(path string) error {
	place, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer place.Close()
	if err = hasName(place.Lstat, filepath.Base(path), nil); err == nil {
		var d *database
		if d, err = newStore(place, path, nil); err == nil {
			// The lock is held until the file has its name: no other daemon empties it meanwhile.
			err = errors.Join(d.takeName(place, path, nil), d.close())
		}
	}
	if err == nil || errors.Is(err, fs.ErrExist) {
		return nil // or another daemon was faster
	}
	return fmt.Errorf("create the store in %s: %w", filepath.Dir(path), err)
}

// newStore makes an empty store beside path, whose name leads to the file old, or to nothing if
// that is nil. It locks the new file: once it has the name, no other process gets it.
func newStore(place *os.Root, path string, old *os.File) (*database, error) {
	name := filepath.Base(path)
	file, err := openRegular(place.Lstat, func(name string, flag int) (*os.File, error) {
		return kernel.CreateIn(place, name, flag, 0o600)
	}, name+newSuffix, os.O_RDWR)
	if errors.Is(err, errNotRegular) {
		return nil, fmt.Errorf("%s cannot be used (%w); remove it and start again", path+newSuffix, err)
	}
	if err != nil {
		return nil, err
	}
	if err = lock(file, false, ourDaemon); err == nil {
		// Two daemons may start at once. If the other one was faster, this may be its store.
		err = hasName(place.Lstat, name, old)
	}
	if err == nil {
		err = kernel.Truncate(file, 0)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	overwriteInPlace(file)
	d := newDatabase(path+newSuffix, file)
	if err := d.openBolt(false); err != nil {
		return nil, err
	}
	err = d.update(func(tx *bbolt.Tx) error {
		meta, err := tx.CreateBucket(metaBucket)
		if err != nil {
			return err
		}
		_, err = tx.CreateBucket(volumesBucket)
		return errors.Join(err, meta.Put(formatKey, formatValue()))
	})
	if err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

// takeName makes a new store durable and gives it its name, in place of the file old. The name
// itself is unsettled afterwards.
func (d *database) takeName(place *os.Root, path string, old *os.File) error {
	// bbolt syncs data alone, and the file is about to be found by its name.
	if err := kernel.Sync(d.file); err != nil {
		return err
	}
	name := filepath.Base(path)
	if err := hasName(place.Lstat, name, old); err != nil {
		return err
	}
	dir, err := place.Open(".")
	if err != nil {
		return err
	}
	if err := kernel.RenameIn(place, name+newSuffix, name); err != nil {
		return errors.Join(err, dir.Close())
	}
	d.path, d.unsettled.dir = path, dir
	return nil
}

// removeNew removes an unfinished store, if there is one.
func removeNew(place *os.Root, path string) error {
	err := kernel.RemoveIn(place, filepath.Base(path)+newSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
