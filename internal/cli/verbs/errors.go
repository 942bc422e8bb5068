package verbs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"syscall"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/terminal"
	"github.com/katbox/katbox/internal/model/volume"
)

// The exit codes, see the package comment.
const (
	CodeFailed      = 1
	CodeUsage       = 2
	CodeIncomplete  = 3
	CodeNoVolume    = 4
	CodeInterrupted = 130 // 128 + SIGINT, as shells report it
	CodeBrokenPipe  = 141 // 128 + SIGPIPE
)

// codedError is an error with an exit code of its own.
type codedError struct {
	error
	code int
}

func (e *codedError) Unwrap() error { return e.error }

// ExitCode returns the exit code; see [CodeOf].
func (e *codedError) ExitCode() int { return e.code }

// WithCode returns an error with an exit code of its own; nil if err is nil.
func WithCode(code int, err error) error {
	if err == nil {
		return nil
	}
	return &codedError{err, code}
}

// WrongUsage returns an error with [CodeUsage].
func WrongUsage(format string, values ...any) error {
	return &codedError{fmt.Errorf(format, values...), CodeUsage}
}

// NoVolume returns an error with [CodeNoVolume].
func NoVolume(format string, values ...any) error {
	return &codedError{fmt.Errorf(format, values...), CodeNoVolume}
}

// output is standard output. It keeps its first error, which is another thing than an error of the
// connection.
type output struct {
	w   io.Writer
	err error
}

func (o *output) Write(p []byte) (int, error) {
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.w.Write(p)
	if err != nil {
		o.err = fmt.Errorf("write to standard output: %w", err)
	}
	return n, o.err
}

// exitCode returns the exit code of the verb name that ended with err, and writes to stderr, in one
// line, what went wrong and what to do.
func exitCode(ctx context.Context, name string, err error, out *output, stderr io.Writer) int {
	if out.err != nil {
		err = out.err
	}
	switch {
	case err == nil:
		return 0
	case errors.Is(out.err, syscall.EPIPE):
		return CodeBrokenPipe
	case ctx.Err() != nil:
		return CodeInterrupted
	}
	fmt.Fprintf(stderr, "%s: %s\n", name, terminal.Clean(volume.OneLine(err)))
	return CodeOf(err)
}

// CodeOf returns the exit code of an error: the one that its method ExitCode returns, if it has such a
// method, or that of an answer.
func CodeOf(err error) int {
	if coded := interface{ ExitCode() int }(nil); errors.As(err, &coded) {
		return coded.ExitCode()
	}
	if HasCode(err, http.StatusNotFound) || HasCode(err, http.StatusGone) {
		return CodeNoVolume
	}
	return CodeFailed
}

// HasCode reports whether err is an answer with an HTTP code.
func HasCode(err error, code int) bool {
	answer := (*api.Error)(nil)
	return errors.As(err, &answer) && answer.Code == code
}

// HasCause reports whether err is an answer that calls the request bad for a reason.
func HasCause(err error, reason api.CauseReason) bool {
	answer := (*api.Error)(nil)
	return errors.As(err, &answer) && answer.Cause() == reason
}
