package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"go.etcd.io/bbolt"

	"github.com/katbox/katbox/internal/volume"
)

// The buckets of the old driver's database.
var (
	legacyVolumesBucket = []byte("volumes")
	legacyDeletedBucket = []byte("deletedVolumes")
)

// Imported is what an import found.
type Imported struct {
	// Done tells that this call did the import. Otherwise there was nothing to
	// do: it was done before, or there is no old database.
	Done bool
	// Published and Retained count the imported records.
	Published int
	Retained  int
	// Skipped are the entries of the old database that could not be used. Their
	// data directories are for whoever adopts directories without a record.
	Skipped []Skipped
}

// Skipped is an entry of the old driver's database that was not imported.
type Skipped struct {
	Bucket string
	Key    string
	Reason string
}

// Imported tells whether the old driver's database was imported.
func (s *Store) Imported() (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var done bool
	err := s.db.view(func(tx *bbolt.Tx) error {
		done = tx.Bucket(metaBucket).Get(legacyImportedKey) != nil
		return nil
	})
	return done, err
}

// ImportLegacy imports the old driver's database at path, which it opens
// read-only and never changes. To be called before [Store.Load].
//
// It happens once: the records and the note that they were imported are one
// transaction. As long as there is no old database nothing is noted, so that
// one which appears later (it was forgotten, or the old driver ran once more) is
// imported then; once imported, it is never read again, however it changes: what
// it would add is found by its data directory or its mount. A volume that the
// store knows already keeps its record, which is the newer one.
//
// Volumes of the bucket "deletedVolumes" are retained since their deletion time,
// for their lifespan. Those of the bucket "volumes" are published; so is a
// volume that is in both, which the old driver leaves behind when it is stopped
// between two steps of an unpublish, because the data of a published volume is
// never deleted.
//
// An old file that cannot be read gives [ErrDamaged] or [ErrLocked], and
// nothing is imported.
func (s *Store) ImportLegacy(path, workdir string, now time.Time) (Imported, error) {
	if done, err := s.Imported(); done || err != nil {
		return Imported{}, err
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Imported{}, nil
	case err != nil:
		return Imported{}, err
	case info.IsDir():
		// The directory of a pod: the kubelet takes any UID from a static pod.
		return Imported{}, nil
	}
	old, err := openDatabase(path, os.O_RDONLY, legacyAdvice)
	if err != nil {
		return Imported{}, fmt.Errorf("import the old driver's database: %w", err)
	}
	var records []volume.Record
	var skipped []Skipped
	err = old.view(func(tx *bbolt.Tx) error {
		records, skipped = readLegacy(tx, workdir)
		return nil
	})
	if err := errors.Join(err, old.close()); err != nil {
		return Imported{}, fmt.Errorf("import the old driver's database: %w", err)
	}

	m := s.clock.writing()
	imported := Imported{Done: true, Skipped: skipped}
	err = s.update(func(tx *bbolt.Tx) error {
		b := tx.Bucket(volumesBucket)
		for _, r := range records {
			if b.Get([]byte(r.ID)) != nil {
				continue
			}
			value, err := encodeValue(r, m)
			if err != nil {
				return fmt.Errorf("volume %q: %w", r.ID, err)
			}
			if err := b.Put([]byte(r.ID), value); err != nil {
				return fmt.Errorf("volume %q: %w", r.ID, err)
			}
			if r.Phase == volume.Published {
				imported.Published++
			} else {
				imported.Retained++
			}
		}
		return tx.Bucket(metaBucket).Put(legacyImportedKey, now.UTC().AppendFormat(nil, time.RFC3339))
	})
	if err != nil {
		return Imported{}, fmt.Errorf("import the old driver's database: %w", err)
	}
	return imported, nil
}

// readLegacy returns all usable records of the old driver's database.
func readLegacy(tx *bbolt.Tx, workdir string) (records []volume.Record, skipped []Skipped) {
	type decode func(key, value []byte, workdir string) (volume.Record, error)
	read := func(bucket []byte, decode decode) {
		b := tx.Bucket(bucket)
		if b == nil {
			return
		}
		_ = b.ForEach(func(key, value []byte) error {
			r, err := decode(key, value, workdir)
			if err != nil {
				skipped = append(skipped, Skipped{string(bucket), string(key), err.Error()})
				return nil
			}
			records = append(records, r)
			return nil
		})
	}
	read(legacyVolumesBucket, decodeLegacyVolume)
	published := tx.Bucket(legacyVolumesBucket)
	read(legacyDeletedBucket, func(key, value []byte, workdir string) (volume.Record, error) {
		r, err := decodeLegacyDeleted(key, value, workdir)
		if err == nil && published != nil && published.Get(key) != nil {
			// Even if the other entry could not be used.
			err = errors.New("it may be published: it is in bucket " + string(legacyVolumesBucket) + " too")
		}
		return r, err
	})
	return records, skipped
}
