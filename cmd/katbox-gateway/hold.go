package main

import (
	"context"
	"fmt"
	"io"

	"github.com/katbox/katbox/internal/gateway/nodehold"
)

// startHolds begins to keep nodes from autoscalers while volumes on them wait to be archived.
func (i *instance) startHolds(ctx context.Context) error {
	if !i.o.holdNodes {
		return nil
	}
	i.counted.Holds()
	holder, err := nodehold.New(nodehold.Config{
		Nodes: i.cluster.metadata.Resource(nodehold.Resource), Waiting: i.registry.Waiting, Elsewhere: i.registry.Elsewhere,
		Metrics: i.counted, Log: i.log.WithName("hold"),
	})
	if err != nil {
		return err
	}
	i.waits = append(i.waits, holder.Wait)
	holder.Start(ctx)
	return nil
}

// releaseNodes is the whole program with --release-nodes.
func releaseNodes(ctx context.Context, o options, stdout io.Writer) error {
	cluster, err := connect(o.kubeconfig)
	if err != nil {
		return err
	}
	released, err := nodehold.Release(ctx, nodehold.Config{Nodes: cluster.metadata.Resource(nodehold.Resource)})
	if err != nil {
		return fmt.Errorf("--release-nodes: %w", err)
	}
	_, err = fmt.Fprintf(stdout, "%d nodes had annotations of the gateway\n", released)
	return err
}
