package rules

import (
	"errors"
	"fmt"

	"github.com/katbox/katbox/internal/model/volume"
)

// UnknownPool answers what is asked of a pool that does not exist.
func UnknownPool(name string) error {
	return fmt.Errorf("%w: there is no Pool %s", volume.ErrUnavailable, name)
}

// ErrNodeStays says that a PoolNode is not to be deleted.
var ErrNodeStays = errors.New("the node is in the cluster")

// Problem is an error of one of internal/model/volume's kinds in words of its own: the kinds' texts are about
// mounts and directories.
type Problem struct {
	// kind is such as [volume.ErrUncertain].
	kind  error
	text  string
	cause error
}

// Error returns the text, and the cause.
func (p *Problem) Error() string {
	if p.cause == nil {
		return p.text
	}
	return p.text + ": " + p.cause.Error()
}

// Is reports whether target is the kind.
func (p *Problem) Is(target error) bool { return target == p.kind }

// Unwrap returns the cause.
func (p *Problem) Unwrap() error { return p.cause }

// Errorf makes an error of a kind, such as [volume.ErrBusy].
func Errorf(kind error, format string, about ...any) error {
	return &Problem{kind: kind, text: fmt.Sprintf(format, about...)}
}

// Wrapf makes an error of a kind that has a cause.
func Wrapf(kind, cause error, format string, about ...any) error {
	return &Problem{kind: kind, text: fmt.Sprintf(format, about...), cause: cause}
}

// IsFinal reports whether an error says that there is no volume, and that there will be none.
func IsFinal(err error) bool {
	return !IsOpen(err) && (errors.Is(err, volume.ErrNoSpace) || errors.Is(err, volume.ErrNotFound) || errors.Is(err, volume.ErrConflict) ||
		errors.Is(err, volume.ErrInvalid))
}

// IsOpen reports whether an error says that the same call may succeed soon.
func IsOpen(err error) bool {
	return errors.Is(err, volume.ErrUncertain) || errors.Is(err, volume.ErrBusy) || errors.Is(err, volume.ErrUnavailable)
}

// Shortly is what an array has said, for a condition. Its text may be long.
func Shortly(err error) string {
	if p, ok := errors.AsType[*Problem](err); ok && p.cause != nil {
		err = p.cause
	}
	return fmt.Sprintf("%.300s", volume.OneLine(err))
}
