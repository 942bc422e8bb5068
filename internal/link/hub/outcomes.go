package hub

import (
	"context"
	"fmt"
	"slices"

	"github.com/katbox/katbox/internal/model/api"
)

// KeepsEnds reports whether a node keeps how pods end. One that is not connected may when it comes.
func (r *Registry) KeepsEnds(node string) bool {
	n := r.find(node)
	if n == nil {
		return true
	}
	c := n.current()
	return c == nil || c.ends
}

// Tell tells a node how pods of its have ended; one that does not keep that, their outcomes alone. The error wraps [ErrAway] or
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
	items := o.Items
	if !c.ends {
		items = slices.Clone(items)
		for i := range items {
			items[i].End = nil
		}
	}
	err := inParts(items, func(items []api.PodOutcome) error { return c.post(ctx, api.OutcomesPath, api.Outcomes{Items: items}) })
	if err != nil {
		return fmt.Errorf("tell %s how its pods have ended: %w", node, err)
	}
	return nil
}
