package hub

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// mostBody bounds a request to a node, which takes twice as much.
const mostBody = 512 << 10

// ErrRefused: the node does not accept the report, because it has another source or is an older version.
var ErrRefused = errors.New("the node does not take it")

// errBad: the node does not take all of it together. It may take parts of it.
var errBad = fmt.Errorf("%w as it is", ErrRefused)

// post sends the gateway's own words to a node. The error wraps [ErrRefused] or errBad where these apply.
func (c *connection) post(ctx context.Context, path string, words any) error {
	body, err := json.Marshal(words)
	if err != nil {
		return err
	}
	if len(body) > mostBody {
		return fmt.Errorf("%w: it has %d bytes, and may have %d", errBad, len(body), mostBody)
	}
	response, err := c.roundTrip(ctx, http.MethodPost, path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, mostHeader))
	switch code := response.StatusCode; {
	case code == http.StatusOK:
		return nil
	case code == http.StatusBadRequest, code == http.StatusRequestEntityTooLarge:
		return fmt.Errorf("%w: it answered %s", errBad, response.Status)
	case code >= 400 && code < 500 && code != http.StatusTooManyRequests:
		return fmt.Errorf("%w: it answered %s", ErrRefused, response.Status)
	}
	return fmt.Errorf("it answered %s", response.Status)
}

// inParts sends items together, or where the node does not take them together each half apart, and so on. One
// that is too long, or that the node finds wrong, keeps no other from it.
func inParts[T any](items []T, send func([]T) error) error {
	err := send(items)
	half := len(items) / 2
	if half == 0 || !errors.Is(err, errBad) {
		return err
	}
	first := inParts(items[:half], send)
	if first != nil && !errors.Is(first, errBad) {
		return first
	}
	if err := inParts(items[half:], send); err != nil {
		return err
	}
	return first
}
