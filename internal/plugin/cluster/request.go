package cluster

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/resource"
)

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

// ask sends a request and returns an answer that is not an error. The caller closes its body.
func (c *Client) ask(ctx context.Context, about object, r api.Request) (*http.Response, error) {
	for again := 0; ; again++ {
		answer, err := c.caller.Exchange(ctx, r)
		if err == nil {
			return answer, nil
		}
		failure := (*api.Error)(nil)
		if !errors.As(err, &failure) || failure.Code != http.StatusTooManyRequests || r.Method != http.MethodGet || again == repeats {
			return nil, &requestError{about, err}
		}
		if err := c.pause(ctx, min(max(failure.RetryAfter, time.Second), mostPause)); err != nil {
			return nil, &requestError{about, err}
		}
	}
}

// get asks for an answer in JSON.
func get[T any](ctx context.Context, c *Client, about object, r api.Request) (into T, header http.Header, err error) {
	answer, err := c.ask(ctx, about, r)
	if err != nil {
		return into, nil, err
	}
	if into, err = api.Decode[T](&c.caller, answer, r.Path, 0); err != nil {
		return into, nil, &requestError{about, err}
	}
	return into, answer.Header, nil
}
