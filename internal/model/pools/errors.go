package pools

import "errors"

var (
	// ErrOutOfRange: no size is within what was asked for, such as less than 1 GiB.
	ErrOutOfRange = errors.New("out of range")
	// ErrInUse: it is attached, or something is made from it, so that it cannot be done now.
	ErrInUse = errors.New("in use")
)
