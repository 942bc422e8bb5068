package arrays

import (
	"context"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/actors/persistent"
)

// Node is the front of the actors: it starts them, asks them, stops them. Its errors are those of
// internal/model/volume; one whose outcome is not known is never a final one.
type Node struct {
	persistent.Front
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
	return &Node{Front: persistent.Front{System: system}, cancel: cancel}, nil
}

// Stop lets running operations end, then ends the actors. Mounts and sessions stay. It is to be called once,
// after the last call was answered. Its error says what did not end before ctx did.
func (n *Node) Stop(ctx context.Context) error {
	return n.StopAndCancel(ctx, n.cancel)
}
