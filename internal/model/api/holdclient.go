package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// anyGrace asks for a release. How long the volume is kept then is the daemon's decision.
const anyGrace = "1s"

// Pin keeps a retained volume until then, and returns it as it is now.
func (c *Client) Pin(ctx context.Context, id string, until time.Time, reason string) (Volume, error) {
	return c.keep(ctx, id, Keep{KeepUntil: &until, Reason: reason})
}

// Unpin takes a pin or a release of a retained volume back, and returns it as it is now.
func (c *Client) Unpin(ctx context.Context, id string) (Volume, error) {
	return c.keep(ctx, id, Keep{})
}

func (c *Client) keep(ctx context.Context, id string, keep Keep) (Volume, error) {
	answer, err := c.exchange(ctx, Request{Method: http.MethodPatch, Path: volumePath(id), Body: keep})
	return decoded[Volume](c, answer, c.known(answer, err, "pins and releases"), volumePath(id), 1)
}

// Release lets a retained volume go after the grace of the daemon, and returns it as it is now. Until
// then Unpin and Pin take that back.
func (c *Client) Release(ctx context.Context, id, reason string) (Volume, error) {
	query := url.Values{"grace": {anyGrace}}
	set(query, "reason", reason)
	answer, err := c.exchange(ctx, Request{Method: http.MethodDelete, Path: volumePath(id), Query: query})
	return decoded[Volume](c, answer, c.known(answer, err, "releases"), volumePath(id), 1)
}

// Purge deletes a retained volume now.
func (c *Client) Purge(ctx context.Context, id, reason string) error {
	query := url.Values{}
	set(query, "reason", reason)
	answer, err := c.exchange(ctx, Request{Method: http.MethodDelete, Path: volumePath(id), Query: query})
	if reason != "" {
		err = c.known(answer, err, "the reason of a deletion")
	}
	if answer != nil {
		answer.Body.Close()
	}
	return err
}

// Gone returns a page of the volumes that are gone, the last one first.
func (c *Client) Gone(ctx context.Context, q GoneQuery) (GoneList, error) {
	answer, err := c.exchange(ctx, Request{Method: http.MethodGet, Path: GonePath, Query: q.values()})
	return decoded[GoneList](c, answer, c.known(answer, err, "deleted volumes"), GonePath, cmp.Or(q.Limit, StandardVolumes))
}

// GonePath is where volumes are that are gone.
const GonePath = "/v1/gone"

// known returns the error of a request, or says that the daemon is too old for it: such a one refuses
// the request with words that help no one.
func (c *Client) known(answer *http.Response, err error, what string) error {
	refused := (*Error)(nil)
	if !errors.As(err, &refused) || answer.Header.Get(HeaderLevel) != "" {
		return err
	}
	switch refused.Code {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed:
		return fmt.Errorf("%s is of an older version, which knows no %s: %w", c.caller.Server, what, ErrOlder)
	}
	return err
}
