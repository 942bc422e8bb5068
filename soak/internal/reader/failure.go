package reader

import (
	"context"
	"errors"
	"io"
	"net/http"
	"syscall"
	"time"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/soak/internal/check"
)

// errIncomplete is wrapped by the errors of streams that did not come to their end.
var errIncomplete = errors.New("the stream is not complete")

// errOver ends a visit: its volume went, or what is wrong was reported.
var errOver = errors.New("the visit is over")

// failure says how a request failed.
func failure(err error) check.Failure {
	var answer *api.Error
	switch {
	case !errors.As(err, &answer):
		switch {
		case errors.Is(err, api.ErrCut):
			return check.Absent
		case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
			return check.Broken
		}
		return check.Unserved
	case answer.Code == http.StatusServiceUnavailable, answer.Code == http.StatusGatewayTimeout:
		return check.Unserved
	case answer.Code == http.StatusNotFound, answer.Code == http.StatusConflict, answer.Code == http.StatusGone:
		return check.Absent
	}
	return check.Refused
}

// isBadRequest reports whether a request was refused because of what it asked for.
func isBadRequest(err error) bool {
	var answer *api.Error
	return errors.As(err, &answer) && answer.Code == http.StatusBadRequest
}

// isNotFound reports whether there is no such volume or file.
func isNotFound(err error) bool {
	var answer *api.Error
	return errors.As(err, &answer) && answer.Code == http.StatusNotFound
}

// judge lets the checker judge a failure, and ends the visit. The end of the run is
// none.
func (p *person) judge(ctx context.Context, s *subject, from time.Time, what string, err error) error {
	if ctx.Err() != nil {
		return errOver
	}
	how := failure(err)
	if (how == check.Unserved || how == check.Broken) && errors.Is(err, errIncomplete) {
		how = check.Absent
	}
	if p.cfg.Checker.ReadFailed(s.volume, from, how, what+": "+err.Error()) {
		p.counts.ended.Add(1)
	}
	return errOver
}
