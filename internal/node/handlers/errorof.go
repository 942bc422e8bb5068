package handlers

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/katbox/katbox/internal/model/api"

	"github.com/katbox/katbox/internal/lib/paths"
	"github.com/katbox/katbox/internal/model/asked"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/files"
)

// errStalled: the client read less than it has to.
var errStalled = errors.New("the client has stopped reading")

// unavailablePause is how long a client should wait for a daemon that starts or stops.
const unavailablePause = 10 * time.Second

// pathErrors are the errors that say what a path leads to.
var pathErrors = []struct {
	err    error
	cause  api.CauseReason
	field  string
	advice string
}{
	{paths.ErrBad, api.BadPath, "path", "; take it from the ref of an entry"},
	{files.ErrBadContinue, api.BadContinue, "continue", "; begin the list anew"},
	{files.ErrNotRegular, api.NotRegularFile, "path", ", and only regular files are read"},
	{files.ErrIsDirectory, api.IsDirectory, "path", "; list it, or read it with archive=tar"},
	{files.ErrNotDirectory, api.NotDirectory, "path", "; describe it with stat=true"},
	{files.ErrSymlink, api.IsSymlink, "path", "; ask for the path that it points to, if that is in the volume"},
	{files.ErrCrossesMount, api.CrossesMount, "path", ", so what is there does not belong to the volume"},
}

// errorOf returns the answer to a request that failed.
func errorOf(err error) *api.Error {
	if e := (*api.Error)(nil); errors.As(err, &e) {
		return e
	}
	for _, p := range pathErrors {
		if errors.Is(err, p.err) {
			return bad(p.cause, p.field, "%s%s", volume.OneLine(err), p.advice)
		}
	}
	err = volume.Exhausted(err)
	why := volume.OneLine(err)
	switch {
	case errors.Is(err, volume.ErrNotFound):
		return api.NewError(api.NotFound, "there is no such volume on this node: %s; it may have expired", why)
	case errors.Is(err, volume.ErrNotRetained), errors.Is(err, volume.ErrBusy):
		return api.NewError(api.Conflict, "%s; that is possible once it is retained", why)
	case errors.Is(err, volume.ErrCapped):
		return api.NewError(api.Conflict, "%s; unpin others, or ask an administrator for a larger --max-pinned", why)
	case errors.Is(err, volume.ErrGone):
		return api.NewError(api.Expired, "%s; nothing can be done with it any more", why)
	case errors.Is(err, fs.ErrNotExist):
		return api.NewError(api.NotFound, "%s; list the directory above to see what is there", why)
	case errors.Is(err, volume.ErrUnavailable), errors.Is(err, volume.ErrExhausted):
		e := api.NewError(api.ServiceUnavailable, "%s; try again in a moment", why)
		e.RetryAfter = unavailablePause
		return e
	case errors.Is(err, volume.ErrInvalid):
		return bad(api.BadParameter, "", "%s", why)
	case errors.Is(err, context.DeadlineExceeded):
		return api.NewError(api.Timeout, "the node did not answer in time: %s; try again", why)
	}
	return api.NewError(api.InternalError, "%s; the daemon's log may say more", why)
}

// bad returns the answer to a request that is wrong. field is the parameter that is wrong.
func bad(cause api.CauseReason, field, format string, values ...any) *api.Error {
	return asked.Bad(cause, field, format, values...)
}
