package apitest

import (
	"context"
	"io"
	"net/http"
	"sync"
)

// inProcess carries requests to a server without a connection.
type inProcess struct{ s *Server }

// RoundTrip returns the answer once it has begun.
func (p inProcess) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	body, from := io.Pipe()
	w := &pipeWriter{PipeWriter: from, header: http.Header{}, begun: make(chan int, 1)}
	context.AfterFunc(ctx, func() { from.CloseWithError(context.Cause(ctx)) })
	asked := req.WithContext(ctx)
	if asked.Body == nil {
		asked.Body = http.NoBody
	}
	go func() {
		p.s.answer(w, asked)
		w.WriteHeader(http.StatusOK)
		from.Close()
	}()
	select {
	case <-ctx.Done():
		cancel()
		return nil, ctx.Err()
	case code := <-w.begun:
		return &http.Response{
			Status: http.StatusText(code), StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: w.header, Body: &pipeBody{body, cancel}, ContentLength: -1, Request: req,
		}, nil
	}
}

// pipeWriter is the server's end of an answer.
type pipeWriter struct {
	*io.PipeWriter
	header http.Header
	once   sync.Once
	begun  chan int
}

func (w *pipeWriter) Header() http.Header { return w.header }

func (w *pipeWriter) WriteHeader(code int) { w.once.Do(func() { w.begun <- code }) }

func (w *pipeWriter) Write(text []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.PipeWriter.Write(text)
}

// Flush does nothing: a pipe keeps nothing back.
func (w *pipeWriter) Flush() {}

// pipeBody is the client's end of it. Closed, it ends the request.
type pipeBody struct {
	*io.PipeReader
	cancel context.CancelFunc
}

func (b *pipeBody) Close() error {
	b.cancel()
	return b.PipeReader.Close()
}
