package ephemeral

import (
	"context"
	"fmt"

	"github.com/katbox/katbox/internal/model/volume"
)

// Gone returns a part of the list of the volumes that were deleted, the last one first, as far back
// as the node remembers them. It asks no actor, so that it delays no call. The error is ctx's, or says
// why the tombstones cannot be read.
func (n *Node) Gone(ctx context.Context, s volume.GoneSelection) (volume.GonePage, error) {
	if err := ctx.Err(); err != nil {
		return volume.GonePage{}, err
	}
	if n.env.Gone == nil {
		return volume.GonePage{}, nil
	}
	page, err := n.env.Gone(s)
	if err != nil {
		return volume.GonePage{}, fmt.Errorf("list the volumes that are gone: %w", err)
	}
	return page, nil
}
