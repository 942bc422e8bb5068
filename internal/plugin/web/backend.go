package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
)

// errBroken is the end of an answer that the cluster did not complete.
var errBroken = errors.New("the answer of the cluster ended early")

// backend asks the cluster, through a handler that may panic.
type backend struct {
	handler http.Handler
	report  func(string)
}

// reply is an answer of the cluster, as it arrives.
type reply struct {
	// code is the HTTP status; 0 if there is no answer.
	code   int
	header http.Header
	// body ends with an error if the answer is not complete.
	body io.Reader
	// close ends the request, and waits for the handler.
	close func()
}

// ask sends a request. It has the given headers alone, and no body.
func (b backend) ask(ctx context.Context, method string, c call, query string, header http.Header) *reply {
	return b.send(ctx, method, c, query, header, nil)
}

// send sends a request. It has the given headers and the given body alone.
func (b backend) send(ctx context.Context, method string, c call, query string, header http.Header, body []byte) *reply {
	ctx, cancel := context.WithCancel(ctx)
	from, to := io.Pipe()
	w := &replyWriter{header: http.Header{}, sent: http.Header{}, to: to, begun: make(chan struct{})}
	r := (&http.Request{
		Method: method, URL: &url.URL{Path: c.path(), RawQuery: query}, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}).WithContext(ctx)
	r.RequestURI = r.URL.RequestURI()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.end(b.serve(w, r))
	}()
	<-w.begun
	return &reply{code: w.code, header: w.sent, body: from, close: sync.OnceFunc(func() {
		cancel()
		from.Close()
		<-ended
	})}
}

// serve runs the handler. A panic of it is an error.
func (b backend) serve(w http.ResponseWriter, r *http.Request) (err error) {
	defer func() {
		why := recover()
		if why == nil {
			return
		}
		if cause, _ := why.(error); !errors.Is(cause, http.ErrAbortHandler) {
			b.report(fmt.Sprintf("a request to the cluster failed inside of the program: %q", fmt.Sprint(why)))
		}
		err = errBroken
	}()
	b.handler.ServeHTTP(w, r)
	return nil
}

// replyWriter is what the handler writes to.
type replyWriter struct {
	header, sent http.Header
	code         int
	begun        chan struct{}
	to           *io.PipeWriter
}

// Header returns what the handler may set until it calls WriteHeader.
func (w *replyWriter) Header() http.Header { return w.header }

// WriteHeader begins the reply. What is informational is left out.
func (w *replyWriter) WriteHeader(code int) {
	if w.code != 0 || code >= 100 && code < 200 && code != http.StatusSwitchingProtocols {
		return
	}
	w.code, w.sent = code, w.header.Clone()
	close(w.begun)
}

// Write waits until the piece was read.
func (w *replyWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.to.Write(p)
}

// Flush has nothing to do: nothing is kept back.
func (w *replyWriter) Flush() { w.WriteHeader(http.StatusOK) }

// end ends the reply, which is complete if err is nil.
func (w *replyWriter) end(err error) {
	if err == nil {
		w.WriteHeader(http.StatusOK)
	} else if w.code == 0 {
		close(w.begun)
	}
	w.to.CloseWithError(err) // nil is the end of the file
}
