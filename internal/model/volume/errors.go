package volume

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
)

// The request itself is wrong; repeating it does not help.
var (
	// ErrInvalid: a field of the request is not acceptable. See [InvalidError].
	ErrInvalid = errors.New("invalid request")
	// ErrConflict: the volume is already there with other parameters.
	ErrConflict = errors.New("conflicts with what is already published")
	// ErrOtherTarget: the volume is mounted elsewhere and its access mode allows only one target.
	ErrOtherTarget = errors.New("already published at another target")
	// ErrNotStaged: a volume of an array has to be staged on the node before a pod can get it.
	ErrNotStaged = errors.New("not staged")
	// ErrForeignMount: what is mounted at the target path is not this volume.
	ErrForeignMount = errors.New("something else is mounted there")
	// ErrNotFound: no such volume, or it is not mounted at the given path.
	ErrNotFound = errors.New("not found")
)

// The volume is not one that can be read or removed; repeating it helps only if the volume changes.
var (
	// ErrNotRetained: a pod uses the volume, or is about to.
	ErrNotRetained = errors.New("not retained now")
	// ErrGone: the volume was deleted, or is being deleted.
	ErrGone = errors.New("gone")
	// ErrCapped: as much is pinned on the node as may be.
	ErrCapped = errors.New("not pinned")
	// ErrNotAttached: as much is attached as may be.
	ErrNotAttached = errors.New("not attached")
)

// The operation did not succeed.
var (
	// ErrFailed: it failed and everything it did was undone.
	ErrFailed = errors.New("failed and undone")
	// ErrUncertain: it failed and its effects may not all be undone.
	ErrUncertain = errors.New("failed, state of the mount is uncertain")
	// ErrUnfinished: the volume is unmounted, and what comes after that did not succeed yet.
	ErrUnfinished = errors.New("not finished yet")
	// ErrNoSpace: there is no room where the data or the records of volumes are.
	ErrNoSpace = errors.New("no space left")
	// ErrExhausted: the daemon or the node has no file descriptor or no memory left. No deletion helps, repeating does.
	ErrExhausted = errors.New("out of resources")
	// ErrRecordsDamaged: the file of the records cannot be used, and nothing can be recorded.
	ErrRecordsDamaged = errors.New("damaged")
)

// The operation was not tried, or not to its end; repeating it helps.
var (
	// ErrBusy: another operation runs for this volume, or the kernel says that its mount is in use.
	ErrBusy = errors.New("volume is busy")
	// ErrUnavailable: the daemon is starting or stopping, or the volume's actor is being restarted.
	ErrUnavailable = errors.New("not available now")
)

// InWorkdir is where [WantsRoom] misses room for inline volumes.
const InWorkdir = "in the working directory"

// WantsRoom marks an error of a data directory or a record as [ErrNoSpace] if it means that the
// file system is full; where says which one. Full is also a directory with as many directories as it can hold (EMLINK: 65,000
// on ext4 without dir_nlink, 32,000 on ext3): a volume that goes takes its pod's directory with it. It is not for other
// errors: the kernel returns the same numbers when the
// kubelet's file system is full and when there are too many mounts (fs.mount-max). bbolt keeps only
// the text of some errors; they get their number back.
func WantsRoom(err error, where string) error {
	if err == nil || errors.Is(err, ErrNoSpace) {
		return err
	}
	for _, number := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EMLINK} {
		switch {
		case errors.Is(err, number):
			return fmt.Errorf("%w %s: %w", ErrNoSpace, where, err)
		case strings.Contains(err.Error(), number.Error()):
			return fmt.Errorf("%w %s: %w (%w)", ErrNoSpace, where, err, number)
		}
	}
	return err
}

// IsNoSpace reports whether [WantsRoom] marks the error.
func IsNoSpace(err error) bool { return errors.Is(WantsRoom(err, ""), ErrNoSpace) }

// exhausted are the errors of the system that no deletion of volumes mends, each with what to do.
var exhausted = []struct {
	number syscall.Errno
	advice string
}{
	{syscall.EMFILE, "the daemon has as many files open as it may: raise its limit (RLIMIT_NOFILE), or see its log for what holds them"},
	{syscall.ENFILE, "the node has as many files open as it may: see which processes hold most, or raise the sysctl fs.file-max"},
	{syscall.ENOMEM, "the kernel has no memory for it: raise the memory limit of the daemon, or make memory free on the node"},
}

// Exhausted marks an error as [ErrExhausted], and says what to do, if it means that there are no file descriptors or
// no memory.
func Exhausted(err error) error {
	if err == nil || errors.Is(err, ErrExhausted) {
		return err
	}
	for _, e := range exhausted {
		if errors.Is(err, e.number) {
			return fmt.Errorf("%w: %w; %s", ErrExhausted, err, e.advice)
		}
	}
	return err
}

// InvalidError says which field of a request is not acceptable and why.
type InvalidError struct {
	// Field is the field's name in the CSI specification.
	Field string
	// Reason completes the sentence that begins with the field's name.
	Reason string
}

// Error returns field and reason as one sentence.
func (e *InvalidError) Error() string { return fmt.Sprintf("%s %s", e.Field, e.Reason) }

// Is makes every InvalidError an [ErrInvalid].
func (e *InvalidError) Is(target error) bool { return target == ErrInvalid }

// Invalid returns an [InvalidError].
func Invalid(field, reason string) error { return &InvalidError{Field: field, Reason: reason} }

// OneLine returns the text of err without line breaks: joined errors have them.
func OneLine(err error) string {
	return strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
