package verbs

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/model/api"
)

const (
	// patience is how long a request is repeated that worked before. A daemon restarts in less, and so
	// does a gateway with its nodes.
	patience = 30 * time.Second
	// firstWait is before the second try.
	firstWait = 100 * time.Millisecond
)

// waits are those between two tries.
var waits = retry.Backoff{First: firstWait, Longest: 3 * time.Second}

// insist repeats a request that may succeed soon, until a time.
func insist[T any](ctx context.Context, until time.Time, ask func() (T, error)) (T, error) {
	for failures := 1; ; failures++ {
		answer, err := ask()
		if err == nil || ctx.Err() != nil || !passes(err) || time.Now().After(until) {
			return answer, err
		}
		_ = retry.Pause(ctx, waits.After(failures))
	}
}

// passes reports whether a request that failed may succeed soon.
func passes(err error) bool {
	answer := (*api.Error)(nil)
	if !errors.As(err, &answer) {
		return true
	}
	switch answer.Code {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// patient is a Reader for what goes on after some of it has worked: an update of the gateway in the
// middle of a long copy costs a pause.
type patient struct{ Reader }

// Files returns a page of a directory.
func (r patient) Files(ctx context.Context, id string, q api.FilesQuery) (api.FileList, error) {
	return insist(ctx, time.Now().Add(patience), func() (api.FileList, error) { return r.Reader.Files(ctx, id, q) })
}

// Bytes begins to read a file or an archive.
func (r patient) Bytes(ctx context.Context, id string, q api.BytesQuery) (*api.Stream, error) {
	return insist(ctx, time.Now().Add(patience), func() (*api.Stream, error) { return r.Reader.Bytes(ctx, id, q) })
}
