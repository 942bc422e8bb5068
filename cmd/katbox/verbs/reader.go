package verbs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"syscall"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/api"
)

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
	case verbs.HasCode(err, http.StatusTooManyRequests):
		return fmt.Errorf("%w; the daemon reads for as many others as it can: try again later", err)
	case verbs.HasCode(err, http.StatusConflict):
		return fmt.Errorf("%w; a pod uses the volume: read its files with kubectl exec", err)
	}
	return err
}

// reader is the daemon as the place that files come from.
type reader struct {
	*api.Client
	s *session
}

// Explain returns an error of a request for the files of a volume. The daemon answers "not found"
// for a path and for a volume; only for the volume the exit code is that of a missing volume.
func (r reader) Explain(ctx context.Context, id string, err error) error {
	if !verbs.HasCode(err, http.StatusNotFound) {
		return r.s.explain(err)
	}
	if _, gone := r.Volume(ctx, id); gone != nil {
		return r.s.explain(gone)
	}
	return verbs.WithCode(verbs.CodeFailed, err)
}

// files returns a volume whose files a verb reads. Messages name it as target.
func (s *session) files(v api.Volume, target string) verbs.Volume {
	return verbs.Volume{Reader: reader{s.client, s}, ID: v.ID, Target: target, What: describe(v)}
}
