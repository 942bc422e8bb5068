package vpsa

import (
	"context"
	"fmt"
	"net/http"

	"github.com/katbox/katbox/internal/controller/array"
)

// GrowVolume reads the size and asks for what is missing, once no earlier expansion can come any more.
func (c *client) GrowVolume(ctx context.Context, id string, to array.Size) (array.Volume, error) {
	unlock, err := c.growing(ctx, id)
	if err != nil {
		return array.Volume{}, err
	}
	defer unlock()
	var seen array.Volume
	done := func(ctx context.Context) (is bool, err error) {
		seen, err = c.Volume(ctx, id)
		return err == nil && seen.Size >= to, err
	}
	is := false
	doubt := "expand volume " + id + " of " + c.endpoint
	err = c.wait(ctx, doubt, func() (bool, error) {
		is, err = done(ctx)
		return is, err
	})
	if is || err != nil {
		return seen, err
	}
	err = c.make(ctx, doubt, call{
		method: http.MethodPost, pattern: "volumes/{id}/expand", id: id, limit: min(shortTime, c.timeout),
		body: map[string]any{"capacity": fmt.Sprintf("%dG", (to - seen.Size).In(array.GiB))},
	}, done)
	if err != nil {
		return array.Volume{}, err
	}
	return seen, nil
}

// growing waits until no other expansion of the volume runs, and keeps others out.
func (c *client) growing(ctx context.Context, id string) (unlock func(), err error) {
	for {
		mine := make(chan struct{})
		other, busy := c.grows.LoadOrStore(id, mine)
		if !busy {
			return func() { c.grows.Delete(id); close(mine) }, nil
		}
		select {
		case <-other.(chan struct{}):
		case <-ctx.Done():
			return nil, ended(ctx.Err())
		}
	}
}
