package array

import (
	"errors"
	"fmt"
)

var (
	// ErrNotFound: the object does not exist on the array.
	ErrNotFound = errors.New("not found on the array")
	// ErrExists: another object has the name.
	ErrExists = errors.New("the name is taken on the array")
	// ErrAttached: it cannot be done while a server is attached.
	ErrAttached = errors.New("attached on the array")
	// ErrHasSnapshots: it cannot be done while there are snapshots.
	ErrHasSnapshots = errors.New("has snapshots on the array")
	// ErrNoRoom: the array has no room for it.
	ErrNoRoom = errors.New("no room on the array")
	// ErrRefused: it cannot be, however often it is asked for.
	ErrRefused = errors.New("refused by the array")
	// ErrDeclined: the array refused it for a reason of its own. Nothing was done, and another array may do it.
	ErrDeclined = errors.New("declined by the array")
	// ErrBusy: it cannot be done now, because of what the array is doing with the object.
	ErrBusy = errors.New("busy on the array")
	// ErrUncertain: whether the change was made, or will be, is not known. Repeat the call to learn it.
	ErrUncertain = errors.New("the outcome on the array is not known")

	// ErrUnreachable: there is no answer that could be the array's. The errors below say more.
	ErrUnreachable = errors.New("the array cannot be reached")
	// ErrCredentials: the array refuses the token.
	ErrCredentials = fmt.Errorf("%w: invalid credentials", ErrUnreachable)
	// ErrTLS: the array's certificate is not trusted.
	ErrTLS = fmt.Errorf("%w: its certificate is not trusted", ErrUnreachable)
	// ErrTimeout: no answer came in time.
	ErrTimeout = fmt.Errorf("%w: no answer in time", ErrUnreachable)
	// ErrNodeAway: the node whose disk has the pool is not connected.
	ErrNodeAway error = &reason{"its node is not connected", ErrUnreachable}
	// ErrDiskAway: the node is connected, and has no such disk, or cannot use it.
	ErrDiskAway error = &reason{"its disk is not there, or cannot be used", ErrUnreachable}
	// ErrBadAnswer: something answered that is no array, or one that is starting.
	ErrBadAnswer = fmt.Errorf("%w: what answers is no array, or is starting", ErrUnreachable)
)

// reason is an error of a kind whose text says nothing of arrays: the pool is on a disk of a node.
type reason struct {
	text string
	kind error
}

func (r *reason) Error() string { return r.text }

// Unwrap is for package errors.
func (r *reason) Unwrap() error { return r.kind }
