package handlers

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/katbox/katbox/internal/model/api"

	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/sealed"
	"github.com/katbox/katbox/internal/model/volume"
)

// answer is a request and the answer to it.
type answer struct {
	http.ResponseWriter
	r       *http.Request
	h       *handler
	control *http.ResponseController
	began   time.Time
	// verb is what the request asks for; it is empty until that is known.
	verb string
	// record is the volume that the request is about, of which at first only the ID is known; ref is
	// the path in it.
	record volume.Record
	ref    string
	// started says that the header of the answer was sent, and sent how many bytes of a stream were.
	started bool
	sent    int64
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

// allow gives the client this long to read what is written from now on.
func (a *answer) allow(limit time.Duration) { _ = a.control.SetWriteDeadline(time.Now().Add(limit)) }

// WriteHeader sends the header.
func (a *answer) WriteHeader(code int) {
	a.started = true
	a.ResponseWriter.WriteHeader(code)
}

// json sends an answer that is not a stream.
func (a *answer) json(code int, body any) error {
	text, err := api.Encode(body)
	if err != nil {
		return err
	}
	return a.text(code, text)
}

// text sends an answer in JSON.
func (a *answer) text(code int, text []byte) error {
	a.allow(sendLimit)
	a.Header().Set("Content-Type", "application/json")
	a.Header().Set("Content-Length", strconv.Itoa(len(text)))
	a.WriteHeader(code)
	if _, err := a.Write(text); err != nil {
		return errors.Join(errLeft, err)
	}
	return nil
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
	if err != nil && a.started {
		// The only way to tell the client that the answer is not complete.
		panic(http.ErrAbortHandler)
	}
}

// fail sends an error, unless the answer has begun. It returns the outcome in one word.
func (a *answer) fail(err error) (outcome string) {
	if errors.Is(err, errLeft) || a.r.Context().Err() != nil && errors.Is(err, context.Canceled) {
		return "left"
	}
	if errors.Is(err, errStalled) {
		return "stalled"
	}
	e := errorOf(err)
	if !a.started {
		if e.RetryAfter > 0 {
			a.Header().Set("Retry-After", strconv.Itoa(int(e.RetryAfter.Seconds())))
		}
		for _, name := range []string{"Content-Disposition", "ETag", "Accept-Ranges", sealed.Header, api.HeaderSize, api.HeaderOffset} {
			a.Header().Del(name)
		}
		if e.Reason != api.RangeNotValid {
			a.Header().Del("Content-Range")
		}
		_ = a.json(e.Code, e.Status) // the client is gone
		a.started = false            // this answer is complete
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
var logged = map[string]bool{"bytes": true, "archive": true, "pin": true, "unpin": true, "release": true, "purge": true}

// log writes one line about a request.
func (a *answer) log(outcome string, err error) {
	log := a.h.Log
	if !logged[a.verb] {
		log = log.V(1)
	}
	if !log.Enabled() {
		return
	}
	more := []any{"verb", a.verb, "outcome", outcome, "took", time.Since(a.began).String()}
	if a.ref != "" {
		more = append(more, "ref", a.ref)
	}
	if a.verb == "bytes" || a.verb == "archive" {
		more = append(more, "bytes", a.sent)
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
