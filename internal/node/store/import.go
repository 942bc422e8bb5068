package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/model/volume"
)

// The buckets of the old driver's database.
var (
	legacyVolumesBucket = []byte("volumes")
	legacyDeletedBucket = []byte("deletedVolumes")
)

// Imported is what an import found.
type Imported struct {
	// Done: this call did the import. Else it was done before, or there is no old database.
	Done bool
	// Published and Retained count the imported records. Skipped are the entries that could not be
	// used: their data directories are adopted like all without a record.
	Published int
	Retained  int
	Skipped   []Skipped
	// Before: the imported records were lost since, and this call only noted the import.
	Before bool
	// Unmarked is why no mark could be left beside the old database. The next start tries again.
	Unmarked error
}

// Skipped is an entry of the old driver's database that was not imported.
type Skipped struct{ Bucket, Key, Reason string }

// ImportLegacy imports the old driver's database at path, which it opens read-only and never
// changes, so that a node can go back to the old driver. Call it before [Store.Load].
//
// It imports once and never reads it again: the records and the note that they were imported are
// one transaction. Without an old database it notes nothing, so one that appears later is imported
// then. A volume that the store knows keeps its record, which is newer.
//
// The note is lost with the records. So an empty file beside them marks the old database as
// imported too: what it calls overdue may be published again, by a pod with a recurring UID.
//
// Volumes of the bucket "deletedVolumes" are retained since their deletion time, for their
// lifespan. Those of the bucket "volumes" are published. So is a volume in both, which the old
// driver leaves when it is stopped between two steps of an unpublish.
//
// An old file that cannot be read gives [ErrDamaged] or [ErrLocked], and nothing is imported.
func (s *Store) ImportLegacy(path, workdir string, now time.Time) (Imported, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Imported{}, nil
	case err != nil && s.imported:
		return Imported{Unmarked: err}, nil
	case err != nil:
		return Imported{}, err
	case info.IsDir():
		// The directory of a pod: the kubelet takes any UID from a static pod.
		return Imported{}, nil
	}
	mark := s.importMark(path)
	there, err := os.Lstat(mark)
	switch marked := err == nil && there.Mode().IsRegular(); {
	case s.imported && marked:
		return Imported{}, nil
	case s.imported:
		return Imported{Unmarked: leaveMark(mark)}, nil
	case marked:
		err := s.update(func(t transaction) error { return noteImport(t, now) })
		s.imported = err == nil
		return Imported{Before: s.imported}, err
	}
	imported, err := s.importRecords(path, workdir, now)
	if err != nil {
		return Imported{}, fmt.Errorf("import the old driver's database: %w", err)
	}
	s.imported = true
	// If the process ends before it leaves the mark, the next start leaves it.
	imported.Unmarked = leaveMark(mark)
	return imported, nil
}

// importRecords reads the old database and commits its records.
func (s *Store) importRecords(path, workdir string, now time.Time) (Imported, error) {
	old, err := openDatabase(path, os.O_RDONLY, oldDriver)
	if err != nil {
		return Imported{}, err
	}
	imported := Imported{Done: true}
	var records []volume.Record
	err = old.view(func(tx *bbolt.Tx) error {
		records, imported.Skipped = readLegacy(tx, workdir)
		return nil
	})
	if err := errors.Join(err, old.close()); err != nil {
		return Imported{}, err
	}
	m := s.clock.writing()
	err = s.update(func(t transaction) error {
		for _, r := range records {
			if t.tx.Bucket(volumesBucket).Get([]byte(r.ID)) != nil {
				continue
			}
			value, err := encodeValue(r, m)
			if err == nil {
				err = t.set(volumesBucket, []byte(r.ID), value)
			}
			if err != nil {
				return fmt.Errorf("volume %q: %w", r.ID, err)
			}
			if r.Phase == volume.Published {
				imported.Published++
			} else {
				imported.Retained++
			}
		}
		return noteImport(t, now)
	})
	return imported, err
}

func noteImport(t transaction, now time.Time) error {
	return t.set(metaBucket, legacyImportedKey, now.UTC().AppendFormat(nil, time.RFC3339))
}

// importMark is the mark's name. The dot tells it from the directories of pods.
func (s *Store) importMark(old string) string {
	return filepath.Join(filepath.Dir(s.db.path), "."+filepath.Base(old)+".imported")
}

// leaveMark makes the mark durable.
func leaveMark(path string) error {
	mark, err := kernel.Create(path, os.O_WRONLY|os.O_EXCL, 0o600)
	var dir *os.File
	if err == nil {
		dir, err = os.Open(filepath.Dir(path))
		err = errors.Join(err, mark.Close())
	}
	if err == nil {
		err = errors.Join(kernel.Sync(dir), dir.Close())
	}
	if err != nil {
		return fmt.Errorf("mark the old driver's database as imported: %w", err)
	}
	return nil
}

// readLegacy returns all usable records of the old driver's database.
func readLegacy(tx *bbolt.Tx, workdir string) (records []volume.Record, skipped []Skipped) {
	read := func(bucket []byte, decode func(key, value []byte, workdir string) (volume.Record, error)) {
		b := tx.Bucket(bucket)
		if b == nil {
			return
		}
		_ = b.ForEach(func(key, value []byte) error {
			if r, err := decode(key, value, workdir); err != nil {
				skipped = append(skipped, Skipped{string(bucket), string(key), err.Error()})
			} else {
				records = append(records, r)
			}
			return nil
		})
	}
	read(legacyVolumesBucket, decodeLegacyVolume)
	published := tx.Bucket(legacyVolumesBucket)
	read(legacyDeletedBucket, func(key, value []byte, workdir string) (volume.Record, error) {
		r, err := decodeLegacyDeleted(key, value, workdir)
		if err == nil && published != nil && published.Get(key) != nil {
			// Even if the other entry cannot be used.
			err = errors.New("it may be published: it is in bucket " + string(legacyVolumesBucket) + " too")
		}
		return r, err
	})
	return records, skipped
}
