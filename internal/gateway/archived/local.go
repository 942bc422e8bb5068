package archived

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/go-logr/logr"
)

// local carries requests to a handler in the same process, as a connection would: the body of an answer is a stream, which is
// cut where the handler panics.
type local struct {
	handler http.Handler
	log     logr.Logger
}

// errCut: the handler has given the answer up.
var errCut = errors.New("the archive could not be read to the end")

// RoundTrip returns once the handler has sent a header.
func (l local) RoundTrip(r *http.Request) (*http.Response, error) {
	body, to := io.Pipe()
	w := &response{header: http.Header{}, body: to, begun: make(chan struct{})}
	answer := &http.Response{
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r, ContentLength: -1,
		Body: body,
	}
	go func() {
		defer func() {
			failed := error(nil)
			if p := recover(); p != nil {
				failed = errCut
				if err, ok := p.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
					l.log.Error(fmt.Errorf("panic: %v", p), "a request to the archive has failed; this is a bug in Katbox", "request", r.URL.Path,
						"stack", string(debug.Stack()))
					w.WriteHeader(http.StatusInternalServerError)
				}
			}
			w.WriteHeader(http.StatusOK)
			_ = to.CloseWithError(failed)
		}()
		if r.Body != nil {
			defer r.Body.Close()
		}
		l.handler.ServeHTTP(w, r)
	}()
	select {
	case <-w.begun:
	case <-r.Context().Done():
		// The handler sees it, too.
		_ = body.CloseWithError(r.Context().Err())
		return nil, r.Context().Err()
	}
	answer.Header, answer.StatusCode = w.sent, w.code
	answer.Status = strconv.Itoa(w.code) + " " + http.StatusText(w.code)
	if length, err := strconv.ParseInt(w.sent.Get("Content-Length"), 10, 64); err == nil {
		answer.ContentLength = length
	}
	return answer, nil
}

// response is what a handler writes to.
type response struct {
	header, sent http.Header
	body         *io.PipeWriter
	code         int
	begun        chan struct{}
}

// Header returns the header that will be sent.
func (w *response) Header() http.Header { return w.header }

// WriteHeader sends the header, once.
func (w *response) WriteHeader(code int) {
	if w.code == 0 {
		w.code, w.sent = code, w.header.Clone()
		close(w.begun)
	}
}

// Write sends a part of the body. It waits until that is read.
func (w *response) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if len(p) == 0 {
		return 0, nil
	}
	return w.body.Write(p)
}

// SetWriteDeadline is for handlers that set one for a connection. Who reads here ends by the context of the request.
func (w *response) SetWriteDeadline(time.Time) error { return nil }
