package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	// mostAnswer bounds how much of an answer in JSON is read: 10,000 entries with paths of 4,096 bytes,
	// each byte encoded in six.
	mostAnswer = 1 << 29
	// mostStatus bounds the body of an answer that is an error, and mostText how much of it is shown
	// where it is not a Status.
	mostStatus = 64 << 10
	mostText   = 200
)

// ErrTimeout is wrapped by the error of a request that [Caller.Timeout] ended.
var ErrTimeout = errors.New("did not answer in time")

// Caller sends requests to one server, and reads answers that are a Status if they are an error. [Client] asks a daemon
// with it, and the plugin the API server. Its methods may be called from several goroutines.
type Caller struct {
	// Server names the server in errors: "the API server".
	Server string
	// Base is what the paths of requests follow.
	Base *url.URL
	// Header is sent with each request.
	Header http.Header
	// Timeout bounds a request; of a stream, the time until its first byte. 0 is no bound.
	Timeout time.Duration

	// bounds of what an answer in JSON may be.
	bounds bounds
	http   http.Client
}

// NewCaller returns a caller that sends its requests through rt. It follows no redirection.
func NewCaller(server string, base *url.URL, rt http.RoundTripper) Caller {
	return Caller{Server: server, Base: base, bounds: bounds{bytes: mostAnswer}, http: http.Client{
		Transport:     rt,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Request is what a server is asked.
type Request struct {
	Method string
	// Path has its elements escaped.
	Path   string
	Query  url.Values
	Header http.Header
	// Body is sent in JSON; nil for none.
	Body any
	// Stream says that the answer may take any time once it has begun.
	Stream bool
}

// Exchange sends a request and returns the answer. With one that is an error it returns an [*Error] too, and has closed its
// body; else the caller closes it.
func (c *Caller) Exchange(ctx context.Context, r Request) (*http.Response, error) {
	answer, err := c.Send(ctx, r)
	if err != nil || answer.StatusCode < http.StatusMultipleChoices {
		return answer, err
	}
	defer answer.Body.Close()
	return answer, c.ReadError(answer)
}

// Send sends a request and returns the answer as it is, also one that is an error. The caller closes
// its body.
func (c *Caller) Send(ctx context.Context, r Request) (*http.Response, error) {
	from := io.Reader(http.NoBody)
	if r.Body != nil {
		text, err := json.Marshal(r.Body)
		if err != nil {
			return nil, err
		}
		from = bytes.NewReader(text)
	}
	to := c.Base.JoinPath(r.Path)
	to.RawQuery = r.Query.Encode()
	ctx, cancel := context.WithCancelCause(ctx)
	q, err := http.NewRequestWithContext(ctx, r.Method, to.String(), from)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	if r.Body != nil {
		q.Header.Set("Content-Type", "application/json")
	}
	maps.Copy(q.Header, c.Header)
	maps.Copy(q.Header, r.Header)
	end, late := func() { cancel(nil) }, func(err error) error {
		if errors.Is(context.Cause(ctx), ErrTimeout) {
			return fmt.Errorf("%s %w (%s)", c.Server, ErrTimeout, c.Timeout)
		}
		return err
	}
	if c.Timeout > 0 {
		limit := time.AfterFunc(c.Timeout, func() { cancel(ErrTimeout) })
		end = func() { limit.Stop(); cancel(nil) }
		if r.Stream {
			defer limit.Stop()
		}
	}
	answer, err := c.http.Do(q)
	if err != nil {
		defer end()
		// It repeats the method and the URL, in which the host may be made up.
		if about := (*url.Error)(nil); errors.As(err, &about) {
			err = about.Err
		}
		return nil, late(err)
	}
	answer.Body = &body{answer.Body, end, late}
	return answer, nil
}

// body is that of an answer. Close ends what the request has begun.
type body struct {
	io.ReadCloser
	end  func()
	late func(error) error
}

// Read reads the next bytes.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = b.late(err)
	}
	return n, err
}

// Close ends the request.
func (b *body) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}

// Close closes the connections that no request uses.
func (c *Caller) Close() { c.http.CloseIdleConnections() }

// Decode reads an answer in JSON, with that many entries at most, and closes it. path is what was asked.
func Decode[T any](c *Caller, answer *http.Response, path string, entries int) (into T, err error) {
	defer answer.Body.Close()
	if err := json.NewDecoder(c.bounds.reader(answer.Body, entries)).Decode(&into); err != nil {
		return into, fmt.Errorf("read the answer of %s to %s: %w", c.Server, path, err)
	}
	return into, nil
}

// ReadError returns the error in an answer of [Caller.Send]. What stands before the server answers with text at times.
func (c *Caller) ReadError(answer *http.Response) *Error {
	e := &Error{}
	text, err := io.ReadAll(io.LimitReader(answer.Body, mostStatus))
	if err != nil || json.Unmarshal(text, &e.Status) != nil || e.Kind != "Status" {
		e.Status = Status{Kind: "Status", Status: "Failure", Reason: InternalError, Message: c.Server + " answered " + answer.Status}
		if why := strings.TrimSpace(string(text[:min(len(text), mostText)])); why != "" && !strings.HasPrefix(why, "<") {
			e.Message += ": " + why
		}
	}
	e.Code = answer.StatusCode
	if seconds, err := strconv.ParseUint(answer.Header.Get("Retry-After"), 10, 16); err == nil {
		e.RetryAfter = time.Duration(seconds) * time.Second
	}
	return e
}
