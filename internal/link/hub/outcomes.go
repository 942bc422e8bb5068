package hub

import (
	"context"
	"fmt"

	"github.com/katbox/katbox/internal/model/api"
)

// Tell tells a node how pods of its have ended. The error wraps [ErrAway] or
// [ErrRefused] where these apply. One that the node does not take keeps no other from it.
func (r *Registry) Tell(ctx context.Context, node string, o api.Outcomes) error {
	n := r.find(node)
	if n == nil {
		return fmt.Errorf("%w: %s", ErrAway, node)
	}
	c := n.current()
	if c == nil {
		return fmt.Errorf("%w: %s", ErrAway, node)
	}
	err := inParts(o.Items, func(items []api.PodOutcome) error { return c.post(ctx, api.OutcomesPath, api.Outcomes{Items: items}) })
	if err != nil {
		return fmt.Errorf("tell %s how its pods have ended: %w", node, err)
	}
	return nil
}
