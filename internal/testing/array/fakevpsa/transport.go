package fakevpsa

import (
	"bytes"
	"errors"
	"io"
	"net/http"
)

// errBroken is what a client sees of a connection that broke.
var errBroken = errors.New("the connection broke")

// Transport returns a client's way to the array without a network, as tests in a synctest bubble need
// it. An answer arrives as a whole.
func (a *Array) Transport() http.RoundTripper { return transport{a} }

type transport struct{ array *Array }

// RoundTrip hands a request to the array.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r.Body = http.NoBody
	}
	defer func() { _ = r.Body.Close() }()
	rec := &recorder{header: http.Header{}, code: http.StatusOK}
	if err := t.serve(rec, r); err != nil {
		if r.Context().Err() != nil {
			return nil, r.Context().Err()
		}
		return nil, err
	}
	if r.Context().Err() != nil {
		return nil, r.Context().Err()
	}
	return &http.Response{
		Status: http.StatusText(rec.code), StatusCode: rec.code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: rec.header, Body: io.NopCloser(&rec.body), ContentLength: int64(rec.body.Len()), Request: r,
	}, nil
}

func (t transport) serve(w http.ResponseWriter, r *http.Request) (err error) {
	defer func() {
		switch p := recover(); p {
		case nil:
		case http.ErrAbortHandler:
			err = errBroken
		default:
			panic(p)
		}
	}()
	t.array.ServeHTTP(w, r)
	return nil
}

type recorder struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(code int)        { r.code = code }
func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }
