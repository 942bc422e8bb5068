package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"

	"github.com/katbox/katbox/soak/internal/pause"
	"github.com/katbox/katbox/soak/internal/quantile"
)

const (
	// callLimit is how long a call may take.
	callLimit = time.Minute
	// afterwards is for how long after the last answer the server's CPU time still
	// counts, so that nothing is gained by putting work off.
	afterwards = 50 * time.Millisecond
	// mostVolumes bounds the volumes of one round.
	mostVolumes = 20_000
)

// round is what one server did in one round.
type round struct {
	Seconds          float64 `json:"seconds"`
	Calls            int     `json:"calls"`
	CallsPerSecond   float64 `json:"callsPerSecond"`
	CPUMicrosPerCall float64 `json:"cpuMicrosPerCall"`
	Publish          latency `json:"publish"`
	Unpublish        latency `json:"unpublish"`
}

// latency is how long calls took, in milliseconds.
type latency struct {
	P50 float64 `json:"p50Millis"`
	P99 float64 `json:"p99Millis"`
	Max float64 `json:"maxMillis"`
}

// durations are how long the calls of one caller took.
type durations struct{ publish, unpublish []time.Duration }

// round publishes and unpublishes so many new volumes, by callers who do one after
// the other.
func (v *server) round(ctx context.Context, callers, volumes int) (round, error) {
	v.rounds++
	list := manyNamed(fmt.Sprintf("round %d", v.rounds), volumes)
	if err := errors.Join(v.connect(ctx, callers), v.makePods(list)); err != nil {
		return round{}, err
	}
	open, _ := v.driver.Descriptors()
	before, err := v.cpu()
	if err != nil {
		return round{}, err
	}
	began := time.Now()
	taken, err := v.each(callers, list, func(caller csi.NodeClient, n names, t *durations) error {
		if err := v.publish(ctx, caller, n, t); err != nil {
			return err
		}
		return v.unpublish(ctx, caller, n, t)
	})
	elapsed := time.Since(began)
	if err != nil {
		return round{}, err
	}
	if err := errors.Join(pause.For(ctx, afterwards), v.copied(ctx, open)); err != nil {
		return round{}, err
	}
	after, err := v.cpu()
	if err != nil {
		return round{}, err
	}
	return summed(taken, elapsed, after-before), v.removePods(list)
}

// copied waits until the logs of all pods are copied, which is put off while calls run: the server holds no more of
// their files open, but a few descriptors of its own, than it had before.
func (v *server) copied(ctx context.Context, before int) error {
	const own, look = 16, 20 * time.Millisecond
	if v.logs == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	for {
		if open, ok := v.driver.Descriptors(); !ok || open <= before+own {
			return nil
		}
		if err := pause.For(ctx, look); err != nil {
			return fmt.Errorf("%s: logs are still held open: %w", v.name, err)
		}
	}
}

// hold publishes so many volumes, which stay.
func (v *server) hold(ctx context.Context, callers, volumes int) error {
	list := manyNamed("held", volumes)
	if err := errors.Join(v.connect(ctx, callers), v.makePods(list)); err != nil {
		return err
	}
	_, err := v.each(callers, list, func(caller csi.NodeClient, n names, t *durations) error { return v.publish(ctx, caller, n, t) })
	return err
}

// each has the callers do something for each volume, and returns how long the
// calls took, by caller.
func (v *server) each(callers int, list []names, do func(csi.NodeClient, names, *durations) error) ([]durations, error) {
	var next atomic.Int64
	taken, errs := make([]durations, callers), make([]error, callers)
	share := len(list)/callers + 1
	var wg sync.WaitGroup
	for i := range callers {
		// What is timed is not to wait for memory.
		taken[i] = durations{publish: make([]time.Duration, 0, 2*share), unpublish: make([]time.Duration, 0, 2*share)}
		caller := csi.NewNodeClient(v.conns[i])
		wg.Go(func() {
			for errs[i] == nil {
				at := int(next.Add(1)) - 1
				if at >= len(list) {
					return
				}
				errs[i] = do(caller, list[at], &taken[i])
			}
		})
	}
	wg.Wait()
	return taken, errors.Join(errs...)
}

func (v *server) publish(ctx context.Context, caller csi.NodeClient, n names, t *durations) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	request := publishRequest(v.layout, n)
	began := time.Now()
	if _, err := caller.NodePublishVolume(ctx, request); err != nil {
		return fmt.Errorf("%s: publish %s: %w", v.name, n.id, err)
	}
	t.publish = append(t.publish, time.Since(began))
	return nil
}

func (v *server) unpublish(ctx context.Context, caller csi.NodeClient, n names, t *durations) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	request := unpublishRequest(v.layout, n)
	began := time.Now()
	if _, err := caller.NodeUnpublishVolume(ctx, request); err != nil {
		return fmt.Errorf("%s: unpublish %s: %w", v.name, n.id, err)
	}
	t.unpublish = append(t.unpublish, time.Since(began))
	return nil
}

// probe makes a call that does nothing.
func probe(ctx context.Context, conn grpc.ClientConnInterface) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	_, err := csi.NewIdentityClient(conn).Probe(ctx, &csi.ProbeRequest{})
	return err
}

// summed makes a round of what the callers measured.
func summed(taken []durations, elapsed, cpu time.Duration) round {
	var publish, unpublish []time.Duration
	for _, t := range taken {
		publish, unpublish = append(publish, t.publish...), append(unpublish, t.unpublish...)
	}
	calls := len(publish) + len(unpublish)
	return round{
		Seconds: elapsed.Seconds(), Calls: calls,
		CallsPerSecond:   float64(calls) / elapsed.Seconds(),
		CPUMicrosPerCall: cpu.Seconds() * 1e6 / float64(calls),
		Publish:          latencyOf(publish), Unpublish: latencyOf(unpublish),
	}
}

func latencyOf(all []time.Duration) latency {
	slices.Sort(all)
	return latency{P50: millis(quantile.Of(all, 0.5)), P99: millis(quantile.Of(all, 0.99)), Max: millis(quantile.Of(all, 1))}
}

func millis(d time.Duration) float64 { return d.Seconds() * 1e3 }
