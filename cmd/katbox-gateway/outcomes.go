package main

import (
	"context"

	core "k8s.io/api/core/v1"

	"github.com/katbox/katbox/internal/gateway/outcomes"
	"github.com/katbox/katbox/internal/gateway/podevents"
)

// startOutcomes begins to tell nodes how their pods have ended.
func (i *instance) startOutcomes(ctx context.Context) (err error) {
	if i.o.outcomes == noOutcomes {
		return nil
	}
	events, err := i.startEvents(ctx)
	if err != nil {
		return err
	}
	ended := func(pod *core.Pod, deleted bool) {
		i.owners.Ended(pod)
		if events != nil {
			events(pod, deleted)
		}
	}
	i.outcomes, err = outcomes.New(outcomes.Config{
		Pods: i.cluster.core.CoreV1(), Nodes: i.registry, Ended: ended, Metrics: i.counted, Log: i.log.WithName("outcomes"),
	})
	if err != nil {
		return err
	}
	i.onStop(func(context.Context) error { i.outcomes.Close(); return nil })
	go i.outcomes.Run(ctx)
	return nil
}

// startEvents begins to write events on pods that have failed. It returns what takes note of a pod; nil with
// --pod-events=false.
func (i *instance) startEvents(ctx context.Context) (func(pod *core.Pod, deleted bool), error) {
	if !i.o.podEvents {
		return nil, nil
	}
	events, err := podevents.New(podevents.Config{
		Client: i.cluster.core.CoreV1(), Namespaces: i.namespaces, Driver: i.o.driverName, Metrics: i.counted, Log: i.log.WithName("events"),
	})
	if err != nil {
		return nil, err
	}
	i.waits = append(i.waits, events.Wait)
	events.Start(ctx)
	return events.Ended, nil
}
