package handlers

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/katbox/katbox/internal/model/api"

	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/volume"
)

// answer is a request and the answer to it.
type answer struct {
	api.Answer
	r *http.Request
	h *handler
	// verb is what the request asks for; it is empty until that is known.
	verb string
	// record is the volume that the request is about, of which at first only the ID is known; ref is
	// the path in it.
	record volume.Record
	ref    string
}

// method is what one HTTP method of a route does, and its name in metrics.
type method struct {
	verb string
	do   func(context.Context) error
}

type methods map[string]method

// by answers according to the HTTP method.
func (a *answer) by(all methods) error {
	m, ok := all[a.r.Method]
	if !ok {
		for name := range all {
			a.Header().Add("Allow", name)
		}
		return api.NewError(api.MethodNotAllowed, "%s is not possible for %q", a.r.Method, a.r.URL.Path)
	}
	a.verb = m.verb
	return m.do(a.r.Context())
}

// plain is a method without parameters.
func (a *answer) plain(do func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if query := a.r.URL.RawQuery; query != "" {
			return bad(api.BadParameter, "", "the query %q is not possible here: there are no parameters", query)
		}
		return do(ctx)
	}
}

// end ends the answer to a request that was handled with an error or nil. It counts and logs the
// request.
func (a *answer) end(err error) {
	outcome := "complete"
	if err != nil {
		outcome = a.fail(err)
	}
	if a.verb == "" {
		a.verb = "unknown"
	}
	a.h.Metrics.ReadRequested(a.verb, outcome)
	a.log(outcome, err)
	if err != nil && a.Code != 0 {
		// The only way to tell the client that the answer is not complete.
		panic(http.ErrAbortHandler)
	}
}

// fail sends an error, unless the answer has begun. It returns the outcome in one word.
func (a *answer) fail(err error) (outcome string) {
	if errors.Is(err, api.ErrLeft) || a.r.Context().Err() != nil && errors.Is(err, context.Canceled) {
		return "left"
	}
	if errors.Is(err, errStalled) {
		return "stalled"
	}
	e := errorOf(err)
	if a.Code == 0 {
		a.Refuse(e.Code, e.RetryAfter, e.Status)
		a.Code, a.Sent = 0, 0 // this answer is complete
	}
	return outcomes[e.Reason]
}

// outcomes are the words of the metric for requests that failed.
var outcomes = map[api.Reason]string{
	api.BadRequest: "bad", api.MethodNotAllowed: "bad", api.RangeNotValid: "bad", api.NotFound: "not_found",
	api.Conflict: "lost", api.Expired: "lost",
	api.TooManyRequests: "refused", api.InternalError: "failed", api.ServiceUnavailable: "failed", api.Timeout: "timeout",
}

// logged are the verbs whose requests the log has a line about. Others have theirs at debug level.
var logged = map[string]bool{"bytes": true, "archive": true, "grep": true, "pin": true, "unpin": true, "release": true, "purge": true}

// log writes one line about a request.
func (a *answer) log(outcome string, err error) {
	log := a.h.Log
	if !logged[a.verb] {
		log = log.V(1)
	}
	if !log.Enabled() {
		return
	}
	more := []any{"verb", a.verb, "outcome", outcome, "took", time.Since(a.Began).String()}
	if a.ref != "" {
		more = append(more, "ref", a.ref)
	}
	if a.verb == "bytes" || a.verb == "archive" || a.verb == "grep" {
		more = append(more, "bytes", a.Sent)
	}
	if err != nil {
		more = append(more, logkeys.Cause, volume.OneLine(err))
	}
	if a.h.Gateway {
		more = append(more, logkeys.User, asker(a.r, api.HeaderUser), logkeys.AuditID, asker(a.r, api.HeaderAuditID))
	}
	log.Info("request", logkeys.About(a.record, more...)...)
}

// mostAsker bounds how much of a name from a gateway is logged.
const mostAsker = 256

// asker returns what a gateway says in a header about who asks. A sink of logs quotes what it does not
// print.
func asker(r *http.Request, header string) string {
	text := r.Header.Get(header)
	if plain, err := url.QueryUnescape(text); err == nil {
		text = plain
	}
	return strings.ToValidUTF8(text[:min(len(text), mostAsker)], "\ufffd")
}
