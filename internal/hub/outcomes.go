package hub

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/katbox/katbox/internal/api"
)

// ErrRefused: the node does not take outcomes, because it has another source or is an older version.
var ErrRefused = errors.New("the node takes no outcomes")

// Tell tells a node how pods of its have ended. The error wraps [ErrAway] or
// [ErrRefused] where these apply.
func (r *Registry) Tell(ctx context.Context, node string, o api.Outcomes) error {
	n := r.find(node)
	if n == nil {
		return fmt.Errorf("%w: %s", ErrAway, node)
	}
	c := n.current()
	if c == nil {
		return fmt.Errorf("%w: %s", ErrAway, node)
	}
	body, err := json.Marshal(o)
	if err != nil {
		return err
	}
	response, err := c.roundTrip(ctx, http.MethodPost, api.OutcomesPath, bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, mostHeader))
	switch code := response.StatusCode; {
	case code == http.StatusOK:
		return nil
	case code >= 400 && code < 500 && code != http.StatusTooManyRequests:
		return fmt.Errorf("%w: %s answered %s", ErrRefused, node, response.Status)
	}
	return fmt.Errorf("%s answered %s", node, response.Status)
}
