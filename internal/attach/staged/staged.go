package staged

import (
	"errors"

	"github.com/go-logr/logr"
)

// Staged is the directory of records. It is safe for concurrent use for different volumes; for one volume
// the caller makes one call at a time.
type Staged struct {
	dir string
	log logr.Logger
}

// Open opens the directory, and makes it where it is missing.
func Open(dir string, log logr.Logger) (*Staged, error) {
	return &Staged{dir: dir, log: log}, nil
}

// Save writes a record durably.
func (s *Staged) Save(Record) error { return errors.ErrUnsupported }

// Load returns the record of a volume; the error is volume.ErrNotFound where there is none.
func (s *Staged) Load(id string) (Record, error) { return Record{}, errors.ErrUnsupported }

// All returns all records, in the order of their volumes' IDs.
func (s *Staged) All() ([]Record, error) { return nil, errors.ErrUnsupported }

// Remove removes the record of a volume durably; that there is none is no error.
func (s *Staged) Remove(id string) error { return errors.ErrUnsupported }
