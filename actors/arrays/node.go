package arrays

import (
	"context"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/messages"
)

// Node is the front of the actors: it starts them, asks them, stops them. Its errors are those of
// internal/model/volume; one whose outcome is not known is never a final one.
type Node struct {
	*actors.System
	cancel context.CancelFunc
}

// Start takes over what earlier runs have staged, from the records alone, and starts the actors.
func Start(cfg Config) (*Node, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	records := recovered(ctx, cfg)
	system := actors.NewSystem(cfg.Log, cfg.Threads)
	if err := system.Start(newOwner(newEnvironment(ctx, system, cfg), records), cfg.Metrics, nil); err != nil {
		cancel()
		return nil, err
	}
	return &Node{System: system, cancel: cancel}, nil
}

// Stop lets running operations end, then ends the actors. Mounts and sessions stay. It is to be called once,
// after the last call was answered. Its error says what did not end before ctx did.
func (n *Node) Stop(ctx context.Context) error {
	return n.StopAndCancel(ctx, n.cancel)
}

// Stage makes a volume ready on the node. A volume that is staged is looked at; one that is staged in
// another way is [volume.ErrConflict].
func (n *Node) Stage(ctx context.Context, s pools.Staging) error {
	return ask(ctx, n, &messages.StageVolume{Routing: routing(ctx, kindVolume, s.Volume), Staging: s})
}

// Unstage undoes Stage, whatever that has come to. It refuses with [volume.ErrBusy] while the volume is
// published. One that is not staged is unstaged.
func (n *Node) Unstage(ctx context.Context, id, path string) error {
	return ask(ctx, n, &messages.UnstageVolume{Routing: routing(ctx, kindVolume, id), Volume: id, Path: path})
}

// Publish gives a staged volume to a pod.
func (n *Node) Publish(ctx context.Context, p pools.NodePublication) error {
	return ask(ctx, n, &messages.PublishStaged{Routing: routing(ctx, kindVolume, p.Volume), Publication: p})
}

// Unpublish takes a volume back from a pod. One that is not published there is unpublished.
func (n *Node) Unpublish(ctx context.Context, id, target string) error {
	return ask(ctx, n, &messages.UnpublishStaged{Routing: routing(ctx, kindVolume, id), Volume: id, Target: target})
}

// Expand makes a staged volume as large as it is on its array, and returns its size in bytes.
func (n *Node) Expand(ctx context.Context, e pools.NodeExpansion) (int64, error) {
	return actors.Ask(ctx, n.Root, n.Supervisor(), &messages.ExpandStaged{Routing: routing(ctx, kindVolume, e.Volume), Expansion: e})
}

// Stats measures a volume that is staged or published at a path, and says whether it can be used.
func (n *Node) Stats(ctx context.Context, id, path string) (volume.Stats, error) {
	return actors.Ask(ctx, n.Root, n.Supervisor(), &messages.StagedStats{Routing: routing(ctx, kindStats, id), Volume: id, Path: path})
}

func ask(ctx context.Context, n *Node, m messages.Question[struct{}]) error {
	_, err := actors.Ask(ctx, n.Root, n.Supervisor(), m)
	return err
}

// routing addresses a request.
func routing(ctx context.Context, kind, name string) messages.Routing {
	deadline, _ := ctx.Deadline()
	return messages.Routing{ID: messages.KeyOf(kind, name), Deadline: deadline}
}
