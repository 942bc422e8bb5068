package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"go.etcd.io/bbolt"

	"github.com/katbox/katbox/internal/crashpoint"
)

// newSuffix marks a database that is not complete yet.
const newSuffix = ".new"

// create makes an empty database, unless there is a file at path already.
//
// It is complete, and on disk, before it gets its name: whatever has the name
// is a database that was in use, so that an empty or unreadable file is known
// to be damaged and never taken for a first start.
func create(path string) error {
	if exists, err := lexists(path); exists || err != nil {
		return err
	}
	file, err := openRegular(path+newSuffix, os.O_RDWR|os.O_CREATE)
	if errors.Is(err, errNotRegular) {
		return fmt.Errorf("create the store: %s cannot be used (%w); remove it and start again", path+newSuffix, err)
	}
	if err != nil {
		return fmt.Errorf("create the store: %w", err)
	}
	// Two daemons may be started at once. Only the one with the lock goes on.
	if err := lock(file, false, ownAdvice); err != nil {
		return errors.Join(err, file.Close())
	}
	d := newDatabase(path+newSuffix, file, ownAdvice)
	if exists, err := lexists(path); exists || err != nil {
		// The other one was faster, and what is open here may be its database.
		return errors.Join(err, file.Close())
	}
	if err := d.initialise(); err != nil {
		return fmt.Errorf("create the store: %w", err)
	}
	// The lock is held until the file has its name, so that nobody else can
	// begin anew with a file that is about to be renamed.
	err = crashpoint.Around("store/rename-new", func() error { return os.Rename(path+newSuffix, path) })
	if err != nil {
		return errors.Join(fmt.Errorf("create the store: %w", err), d.close())
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		return errors.Join(fmt.Errorf("create the store: %w", err), d.close())
	}
	return d.close()
}

// initialise makes the open file, whatever an interrupted attempt left in it,
// an empty store that is on disk. When it fails the file is closed.
func (d *database) initialise() error {
	if err := crashpoint.Around("store/empty-new", func() error { return d.file.Truncate(0) }); err != nil {
		return errors.Join(err, d.file.Close())
	}
	overwriteInPlace(d.file)
	if err := d.openBolt(false); err != nil {
		return err
	}
	err := d.update(func(tx *bbolt.Tx) error {
		if _, err := tx.CreateBucket(volumesBucket); err != nil {
			return err
		}
		m, err := tx.CreateBucket(metaBucket)
		if err != nil {
			return err
		}
		return m.Put(formatKey, strconv.AppendInt(nil, formatVersion, 10))
	})
	if err == nil {
		// bbolt syncs data only; the file is about to be relied upon by name.
		err = crashpoint.Around("store/sync-new", d.file.Sync)
	}
	if err != nil {
		return errors.Join(err, d.close())
	}
	return nil
}

// lexists tells whether there is anything with the given name.
func lexists(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// syncDir makes a rename in the directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
