package cluster

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

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/resource"
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

// request is what is asked of the API server.
type request struct {
	method string
	// object is what it is about, for messages.
	object object
	path   string
	query  url.Values
	header http.Header
	// body is sent in JSON; nil for none.
	body any
	// stream says that the answer may take any time once it has begun.
	stream bool
}

// object names what a request is about, in the words of Kubernetes' authorization. All are empty for a
// request that is not about retained volumes.
type object struct {
	verb, subresource, namespace, name string
}

// path returns the path of an object.
func (o object) path() string {
	path := resource.VersionPath
	if o.namespace != "" {
		path += "/namespaces/" + o.namespace
	}
	path += "/" + resource.Resource
	if o.name != "" {
		path += "/" + o.name
	}
	if o.subresource != "" {
		path += "/" + o.subresource
	}
	return path
}

// requestError is a request that failed. It remembers what it was about, for Explain.
type requestError struct {
	object
	error
}

func (e *requestError) Unwrap() error { return e.error }

// errTimeout: the API server did not answer within --request-timeout.
var errTimeout = errors.New("the API server did not answer in time")

// ask sends a request and returns an answer that is not an error. The caller closes its body.
func (c *Client) ask(ctx context.Context, r request) (*http.Response, error) {
	for again := 0; ; again++ {
		answer, err := c.send(ctx, r)
		if err != nil {
			return nil, &requestError{r.object, err}
		}
		if answer.StatusCode < http.StatusMultipleChoices {
			return answer, nil
		}
		failure := readError(answer)
		_ = answer.Body.Close()
		if failure.Code != http.StatusTooManyRequests || r.method != http.MethodGet || again == repeats {
			return nil, &requestError{r.object, failure}
		}
		if err := c.pause(ctx, min(max(failure.RetryAfter, time.Second), mostPause)); err != nil {
			return nil, &requestError{r.object, err}
		}
	}
}

// send sends a request once and returns the answer as it is. The caller closes its body.
func (c *Client) send(ctx context.Context, r request) (*http.Response, error) {
	var from io.Reader
	if r.body != nil {
		text, err := json.Marshal(r.body)
		if err != nil {
			return nil, err
		}
		from = bytes.NewReader(text)
	}
	to := c.base.JoinPath(r.path)
	to.RawQuery = r.query.Encode()
	ctx, cancel := context.WithCancelCause(ctx)
	q, err := http.NewRequestWithContext(ctx, r.method, to.String(), from)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	q.Header.Set("Accept", "application/json")
	maps.Copy(q.Header, r.header)
	if from != nil && q.Header.Get("Content-Type") == "" {
		q.Header.Set("Content-Type", "application/json")
	}
	end, late := func() { cancel(nil) }, func(err error) error {
		if errors.Is(context.Cause(ctx), errTimeout) {
			return fmt.Errorf("%w within %s", errTimeout, c.timeout)
		}
		return err
	}
	if c.timeout > 0 {
		limit := time.AfterFunc(c.timeout, func() { cancel(errTimeout) })
		end = func() { limit.Stop(); cancel(nil) }
		if r.stream {
			defer limit.Stop()
		}
	}
	answer, err := c.http.Do(q)
	if err != nil {
		defer end()
		// It repeats the method and the URL.
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

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = b.late(err)
	}
	return n, err
}

func (b *body) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}

// get asks for an answer in JSON.
func get[T any](ctx context.Context, c *Client, r request) (into T, header http.Header, err error) {
	answer, err := c.ask(ctx, r)
	if err != nil {
		return into, nil, err
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(io.LimitReader(answer.Body, mostAnswer)).Decode(&into); err != nil {
		return into, nil, &requestError{r.object, fmt.Errorf("read the answer of the API server to %s: %w", r.path, err)}
	}
	return into, answer.Header, nil
}

// readError returns the error in an answer. What stands before the gateway answers with text at times.
func readError(answer *http.Response) *api.Error {
	e := &api.Error{}
	text, err := io.ReadAll(io.LimitReader(answer.Body, mostStatus))
	if err != nil || json.Unmarshal(text, &e.Status) != nil || e.Kind != "Status" {
		e.Status = api.Status{Kind: "Status", Status: "Failure", Message: "the API server answered " + answer.Status}
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
