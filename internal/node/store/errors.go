package store

import (
	"errors"
	"fmt"

	"github.com/katbox/katbox/internal/model/volume"
)

var (
	// ErrDamaged: a database file exists and cannot be used. Nothing was changed.
	ErrDamaged = volume.ErrRecordsDamaged
	// ErrLocked: another process has the database open.
	ErrLocked = errors.New("locked by another process")
	// ErrNewer: the database has a format that this version does not know.
	ErrNewer = errors.New("written by a newer Katbox")
	// ErrInvalidRecord: a record that could not be read again is not written.
	ErrInvalidRecord = errors.New("invalid record")
)

// owner is the program that has a database file open.
type owner string

const (
	ourDaemon owner = "another Katbox daemon runs"
	oldDriver owner = "the old driver still runs"
)

func damagedError(path string, reason error) error {
	return fmt.Errorf("%s is %w (%w); move it aside and start again: data directories without a record are then adopted"+
		" as retained for a full lifespan, nothing is deleted", path, ErrDamaged, reason)
}
