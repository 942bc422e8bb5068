package local

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/katbox/katbox/soak/internal/pause"
)

const (
	// callLimit is how long a call may take, with its repetitions. The machine may be an emulated one, and the daemon
	// may be started again meanwhile.
	callLimit = 90 * time.Second
	// tryLimit is how long one try may take.
	tryLimit = 30 * time.Second
	// again is the pause before a call is repeated.
	again = 50 * time.Millisecond
	// mostAnswer bounds an answer.
	mostAnswer = 8 << 20
)

// failure is an error that a node answers with.
type failure struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Error is the node's message.
func (f *failure) Error() string { return f.Reason + ": " + f.Message }

// isNoSpace reports whether a node has refused because there is no room.
func isNoSpace(err error) bool {
	f := (*failure)(nil)
	return errors.As(err, &f) && f.Reason == "NoSpace"
}

// mayRepeat reports whether a call may succeed when it is repeated. Without an answer it is not known what was done.
func mayRepeat(err error) bool {
	f := (*failure)(nil)
	if !errors.As(err, &f) {
		return true
	}
	return f.Reason == "Busy" || f.Reason == "Unavailable" || f.Reason == "Uncertain"
}

// repeat tries something until there is an answer that says more than to repeat it.
func repeat(ctx context.Context, what string, mayRepeat func(error) bool, try func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	err := pause.Until(limited, again, func() (bool, error) {
		trying, end := context.WithTimeout(limited, tryLimit)
		defer end()
		err := try(trying)
		return err == nil || !mayRepeat(err), err
	})
	if err != nil {
		err = fmt.Errorf("%s: %w", what, err)
	}
	return err
}

// ask asks the node, and repeats that.
func ask[T any](ctx context.Context, c *Controller, method, path string, body any) (answer T, err error) {
	err = repeat(ctx, method+" "+path, mayRepeat, func(ctx context.Context) (err error) {
		answer, err = askOnce[T](ctx, c, method, path, body)
		return err
	})
	return answer, err
}

func askOnce[T any](ctx context.Context, c *Controller, method, path string, body any) (answer T, err error) {
	node, err := c.connection(ctx)
	if err != nil {
		return answer, err
	}
	var content []byte
	if body != nil {
		if content, err = json.Marshal(body); err != nil {
			return answer, err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://node/v1/pools"+path, bytes.NewReader(content))
	if err != nil {
		return answer, err
	}
	response, err := node.RoundTrip(request)
	if err != nil {
		return answer, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, mostAnswer))
	if err != nil {
		return answer, err
	}
	if response.StatusCode == http.StatusOK {
		return answer, json.Unmarshal(text, &answer)
	}
	var f failure
	if err := json.Unmarshal(text, &f); err != nil || f.Reason == "" {
		return answer, fmt.Errorf("the node answers %d: %.200s", response.StatusCode, text)
	}
	return answer, &f
}

// pools returns the node's pools by their classes, once all of them are there.
func (c *Controller) pools(ctx context.Context, classes []string) (by map[string]pool, err error) {
	err = repeat(ctx, "look for the node's pools", mayRepeat, func(ctx context.Context) error {
		all, err := askOnce[list[pool]](ctx, c, http.MethodGet, "", nil)
		by = make(map[string]pool)
		for _, p := range all.Items {
			if by[p.Class] = p; p.Failed != "" || p.UUID == "" {
				err = fmt.Errorf("pool %s: %s", p.Class, p.Failed)
			}
		}
		if err == nil && len(by) != len(classes) {
			err = fmt.Errorf("of %q there are the pools %v", classes, by)
		}
		return err
	})
	return by, err
}
