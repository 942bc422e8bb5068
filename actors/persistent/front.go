package persistent

import (
	"context"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/messages"
)

// What has an actor in both kinds: the kit finds it by the kind and a name, such as volume/pvc-1.
const (
	KindVolume = "volume"
	// KindStats measures a volume, beside what is done to it.
	KindStats = "stats"
)

// Front asks the actors. Its errors are those of internal/model/volume; one whose outcome is not known is never a final
// one.
type Front struct{ *actors.System }

// Stage makes a volume ready on the node. A volume that is staged is looked at; one that is staged in another way is
// [volume.ErrConflict].
func (f Front) Stage(ctx context.Context, s pools.Staging) error {
	return f.Change(ctx, &messages.StageVolume{Routing: messages.RoutingTo(ctx, KindVolume, s.Volume), Staging: s})
}

// Unstage undoes Stage, whatever that has come to. It refuses with [volume.ErrBusy] while the volume is published. One that
// is not staged is unstaged.
func (f Front) Unstage(ctx context.Context, id, path string) error {
	return f.Change(ctx, &messages.UnstageVolume{Routing: messages.RoutingTo(ctx, KindVolume, id), Volume: id, Path: path})
}

// Publish gives a staged volume to a pod.
func (f Front) Publish(ctx context.Context, p pools.NodePublication) error {
	return f.Change(ctx, &messages.PublishStaged{Routing: messages.RoutingTo(ctx, KindVolume, p.Volume), Publication: p})
}

// Unpublish takes a volume back from a pod. One that is not published there is unpublished.
func (f Front) Unpublish(ctx context.Context, id, target string) error {
	return f.Change(ctx, &messages.UnpublishStaged{Routing: messages.RoutingTo(ctx, KindVolume, id), Volume: id, Target: target})
}

// Expand completes the growth of a volume on the node, and returns its size in bytes.
func (f Front) Expand(ctx context.Context, e pools.NodeExpansion) (int64, error) {
	m := &messages.ExpandStaged{Routing: messages.RoutingTo(ctx, KindVolume, e.Volume), Expansion: e}
	return actors.Ask(ctx, f.Root, f.Supervisor(), m)
}

// Stats measures a volume that is staged or published at a path, and says whether it can be used.
func (f Front) Stats(ctx context.Context, id, path string) (volume.Stats, error) {
	return actors.Ask(ctx, f.Root, f.Supervisor(),
		&messages.StagedStats{Routing: messages.RoutingTo(ctx, KindStats, id), Volume: id, Path: path})
}
