package api

import (
	"cmp"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/katbox/katbox/internal/model/sealed"
)

// ErrLeft is wrapped by the error of an answer that its client does not read any more.
var ErrLeft = errors.New("the client has gone")

// Answer is the answer of a daemon or of a gateway to one request. It knows what was sent.
type Answer struct {
	http.ResponseWriter
	Control *http.ResponseController
	// Began is when the request was there.
	Began time.Time
	// Code is that of the answer; 0 before its header was sent. Sent is how many bytes of its body were.
	Code int
	Sent int64

	request *http.Request
	// limit is how long a client may take to read an answer that is not a stream.
	limit time.Duration
}

// NewAnswer returns the answer to a request, with the headers that keep a browser from running what it gets. A client may
// take as long as limit to read an answer that is not a stream.
func NewAnswer(w http.ResponseWriter, r *http.Request, limit time.Duration) Answer {
	header := w.Header()
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "no-store")
	return Answer{ResponseWriter: w, Control: http.NewResponseController(w), Began: time.Now(), request: r, limit: limit}
}

// Unwrap gives [http.ResponseController] what it controls.
func (a *Answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader sends the header.
func (a *Answer) WriteHeader(code int) {
	a.Code = code
	a.ResponseWriter.WriteHeader(code)
}

// Write sends a part of the body.
func (a *Answer) Write(p []byte) (int, error) {
	a.Code = cmp.Or(a.Code, http.StatusOK)
	n, err := a.ResponseWriter.Write(p)
	a.Sent += int64(n)
	return n, err
}

// Allow gives the client this long to read what is written from now on.
func (a *Answer) Allow(limit time.Duration) { _ = a.Control.SetWriteDeadline(time.Now().Add(limit)) }

// JSON sends an answer that is not a stream.
func (a *Answer) JSON(code int, body any) error {
	text, err := Encode(body)
	if err != nil {
		return err
	}
	return a.Whole(code, "application/json", text)
}

// Whole sends an answer that is not a stream, and is encoded already.
func (a *Answer) Whole(code int, contentType string, body []byte) error {
	a.Allow(a.limit)
	a.Header().Set("Content-Type", contentType)
	a.Header().Set("Content-Length", strconv.Itoa(len(body)))
	a.WriteHeader(code)
	if a.request.Method == http.MethodHead {
		return nil
	}
	if _, err := a.Write(body); err != nil {
		return errors.Join(ErrLeft, err)
	}
	return nil
}

// Refuse sends an error in the place of the answer whose header may be prepared. pause is how long to wait before the request
// is repeated; 0 for nothing about that.
func (a *Answer) Refuse(code int, pause time.Duration, status any) {
	header := a.Header()
	for _, name := range []string{"Content-Disposition", "ETag", "Accept-Ranges", sealed.Header, HeaderSize, HeaderOffset, "Warning"} {
		header.Del(name)
	}
	if code != http.StatusRequestedRangeNotSatisfiable {
		header.Del("Content-Range")
	}
	if pause > 0 {
		header.Set("Retry-After", strconv.Itoa(int(pause.Seconds())))
	}
	_ = a.JSON(code, status) // the client is gone
}
