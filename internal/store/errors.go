package store

import (
	"errors"
	"fmt"

	"github.com/katbox/katbox/internal/volume"
)

var (
	// ErrDamaged: a database file exists and cannot be used. The message says why, and what to do.
	// Nothing was changed.
	ErrDamaged = volume.ErrRecordsDamaged
	// ErrLocked: another process has the database open.
	ErrLocked = errors.New("locked by another process")
	// ErrNewer: the database has a format that this version does not know.
	ErrNewer = errors.New("written by a newer Katbox")
	// ErrInvalidRecord: a record that could not be read again is not written. It is a fault of the
	// caller, not of the file.
	ErrInvalidRecord = errors.New("invalid record")
)

// advice completes the errors of one kind of database file with what to do.
type advice struct {
	damaged string
	locked  string
}

var (
	ownAdvice = advice{
		damaged: "move it aside and start again: the data directories are then adopted" +
			" as retained for a full lifespan, nothing is deleted",
		locked: "another Katbox daemon runs on this working directory; stop it first",
	}
	legacyAdvice = advice{
		damaged: "move it aside and start again: the data directories of its volumes are then" +
			" adopted as retained for a full lifespan, nothing is deleted",
		locked: "the old driver still runs on this working directory; stop it first",
	}
)

func (a advice) damagedError(path string, reason error) error {
	return fmt.Errorf("%s is %w (%w); %s", path, ErrDamaged, reason, a.damaged)
}

func (a advice) lockedError(path string) error {
	return fmt.Errorf("%s is %w: %s", path, ErrLocked, a.locked)
}

func newerError(path, format string) error {
	return fmt.Errorf("%s was %w (format %s, this version knows up to %d): do not downgrade,"+
		" start the newer version again", path, ErrNewer, format, formatVersion)
}
