package verbs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"syscall"

	"github.com/katbox/katbox/internal/api"
	"github.com/katbox/katbox/internal/terminal"
	"github.com/katbox/katbox/internal/volume"
)

// The exit codes.
const (
	codeFailed      = 1
	codeUsage       = 2
	codeNoVolume    = 4
	codeInterrupted = 130 // 128 + SIGINT, as shells report it
	codeBrokenPipe  = 141 // 128 + SIGPIPE
)

// codedError is an error with an exit code of its own.
type codedError struct {
	error
	code int
}

func (e *codedError) Unwrap() error { return e.error }

func wrongUsage(format string, values ...any) error {
	return &codedError{fmt.Errorf(format, values...), codeUsage}
}

func noVolume(format string, values ...any) error {
	return &codedError{fmt.Errorf(format, values...), codeNoVolume}
}

// output is standard output. It keeps its first error, which is another thing than an error of the
// connection to the daemon.
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

// exitCode returns the exit code of a verb that ended with err, and writes to stderr, in one line,
// what went wrong and what to do.
func exitCode(ctx context.Context, name string, err error, out *output, stderr io.Writer) int {
	if out.err != nil {
		err = out.err
	}
	if name != "" {
		name = " " + name
	}
	about := (*codedError)(nil)
	switch {
	case err == nil:
		return 0
	case errors.Is(out.err, syscall.EPIPE):
		return codeBrokenPipe
	case ctx.Err() != nil:
		return codeInterrupted
	case !errors.As(err, &about):
		about = &codedError{error: err, code: codeOf(err)}
	}
	fmt.Fprintf(stderr, "katbox%s: %s\n", name, terminal.Clean(volume.OneLine(err)))
	return about.code
}

// codeOf returns the exit code of an error that brings none.
func codeOf(err error) int {
	if is(err, http.StatusNotFound) || is(err, http.StatusGone) {
		return codeNoVolume
	}
	return codeFailed
}

// is reports whether err is an answer of the daemon with an HTTP code.
func is(err error, code int) bool {
	answer := (*api.Error)(nil)
	return errors.As(err, &answer) && answer.Code == code
}

// because reports whether err is an answer of the daemon that calls the request bad for a reason.
func because(err error, reason api.CauseReason) bool {
	answer := (*api.Error)(nil)
	return errors.As(err, &answer) && answer.Cause() == reason
}

// explain returns an error of a request with what a person can do about it.
func (s *session) explain(err error) error {
	const where = "run katbox in the daemon's container (kubectl -n katbox exec POD -- /katbox ls), " +
		"or name the socket with --socket or " + socketVariable
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no admin socket %s: no daemon runs here, or it has --admin-socket none; %s", s.socket, where)
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENOTSOCK), errors.Is(err, syscall.EPROTOTYPE):
		return fmt.Errorf("%s is not a socket: %s", s.socket, where)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("no daemon answers on %s: it has ended, or it is starting; see its log and try again", s.socket)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("the admin socket %s is not for this user: run katbox as root; %s", s.socket, where)
	case is(err, http.StatusTooManyRequests):
		return fmt.Errorf("%w; the daemon reads for as many others as it can: try again later", err)
	case is(err, http.StatusConflict):
		return fmt.Errorf("%w; a pod uses the volume: read its files with kubectl exec", err)
	}
	return err
}

// explainRead returns an error of a request for the files of a volume. The daemon answers "not
// found" for a path and for a volume; only for the volume the exit code is codeNoVolume.
func (s *session) explainRead(ctx context.Context, id string, err error) error {
	if !is(err, http.StatusNotFound) {
		return s.explain(err)
	}
	if _, gone := s.client.Volume(ctx, id); gone != nil {
		return s.explain(gone)
	}
	return &codedError{err, codeFailed}
}
