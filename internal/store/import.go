package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"

	"github.com/katbox/katbox/internal/crashpoint"
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
	// Before tells that it was imported into records that were lost since, so that
	// this call has noted it and imported nothing.
	Before bool
	// Unmarked is why no mark could be left beside the old database. The next start
	// tries again.
	Unmarked error
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
// The note goes with the records when they are lost. So an empty file beside them
// marks the old database as imported, too: what that calls overdue may have been
// published again since, by a pod with a recurring UID. Without its record such a
// volume is adopted like any other. The old database itself stays as it is, so that
// a node can go back to the old driver.
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
	done, err := s.Imported()
	if err != nil {
		return Imported{}, err
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Imported{}, nil
	case err != nil && done:
		return Imported{Unmarked: err}, nil
	case err != nil:
		return Imported{}, err
	case info.IsDir():
		// The directory of a pod: the kubelet takes any UID from a static pod.
		return Imported{}, nil
	}
	mark := s.importMark(path)
	switch marked := isRegular(mark); {
	case done && marked:
		return Imported{}, nil
	case done:
		return Imported{Unmarked: leaveMark(mark)}, nil
	case marked:
		err := s.update(func(t transaction) error { return noteImport(t, now) })
		return Imported{Before: err == nil}, err
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
	err = s.update(func(t transaction) error {
		for _, r := range records {
			if t.get(volumesBucket, []byte(r.ID)) != nil {
				continue
			}
			value, err := encodeValue(r, m)
			if err != nil {
				return fmt.Errorf("volume %q: %w", r.ID, err)
			}
			if err := t.put(volumesBucket, []byte(r.ID), value); err != nil {
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
	if err != nil {
		return Imported{}, fmt.Errorf("import the old driver's database: %w", err)
	}
	imported.Unmarked = leaveMark(mark)
	return imported, nil
}

func noteImport(t transaction, now time.Time) error {
	return t.put(metaBucket, legacyImportedKey, now.UTC().AppendFormat(nil, time.RFC3339))
}

// importMark is the name of the mark that the old driver's database was imported. The
// dot keeps it apart from the directories of pods.
func (s *Store) importMark(old string) string {
	return filepath.Join(filepath.Dir(s.db.path), "."+filepath.Base(old)+".imported")
}

func isRegular(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular()
}

// leaveMark makes the mark durable. It comes after the import: if the process ends in
// between, the next start leaves the mark.
func leaveMark(path string) error {
	err := crashpoint.Around("store/mark-imported", func() error {
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		return file.Close()
	})
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("mark the old driver's database as imported: %w", err)
	}
	return nil
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
