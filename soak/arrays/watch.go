package main

import (
	"context"
	"time"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/pause"
)

// watch looks all the time whether the array has what it has to, and no more, and whether the programs live.
func (r *run) watch(ctx context.Context) {
	for pause.For(ctx, 500*time.Millisecond) == nil {
		select {
		case err := <-r.programs.daemon.Died():
			r.found.broken(history.Lives, nil, "the daemon: %v", err)
		case err := <-r.programs.controller.Died():
			r.found.broken(history.Lives, nil, "the controller: %v", err)
		default:
		}
		if err := r.look(ctx); err != nil && ctx.Err() == nil {
			r.found.say("look at the array: %v", err)
		}
	}
}

// look compares the array with the pods that run.
func (r *run) look(ctx context.Context) error {
	before := r.node.inUse()
	ids, err := r.kube.list(ctx, "poolvolumes")
	if err != nil {
		return err
	}
	has, err := r.array.state(ctx)
	if err != nil {
		return err
	}
	servers := make(map[string]int)
	for _, v := range has.Volumes {
		servers[v.ID] = len(v.Attachments)
	}
	after := r.node.inUse()
	for _, one := range ids {
		name, id := one.Metadata.Name, one.Status.ID
		r.mu.Lock()
		v := r.volumes[name]
		r.mu.Unlock()
		if v == nil || id == "" {
			continue
		}
		if n := servers[id]; n > 1 && !v.shared {
			r.found.broken(Once, nil, "volume %s: ReadWriteOnce, and attached to %d servers", name, n)
		}
		if p := before[name]; p != nil && after[name] == p && servers[id] == 0 {
			r.found.broken(history.PublishedData, p.Volumes[0].Story, "volume %s is published, and attached to no server", name)
		}
	}
	return nil
}
