package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/katbox/katbox/soak/testbed"
)

// callTimes are how long calls took.
type callTimes struct{ publish, unpublish []time.Duration }

// call publishes and unpublishes new volumes until ctx ends or ended says so. callers is how many
// callers do that at once, without a pause.
func (d *daemon) call(ctx context.Context, callers int, ended func() bool) callTimes {
	var all callTimes
	var mu sync.Mutex
	var group sync.WaitGroup
	for caller := range callers {
		pod := fmt.Sprintf("caller-%d", caller)
		d.makePod(pod)
		group.Go(func() {
			own, err := d.callAs(ctx, pod, ended)
			if err != nil {
				d.t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			all.publish, all.unpublish = append(all.publish, own.publish...), append(all.unpublish, own.unpublish...)
		})
	}
	group.Wait()
	return all
}

// callAs is one caller of call. Its volumes have one pod.
func (d *daemon) callAs(ctx context.Context, pod string, ended func() bool) (own callTimes, err error) {
	for i := 0; ctx.Err() == nil && !ended(); i++ {
		id := fmt.Sprintf("csi-%s-%d-%d", pod, time.Now().UnixNano(), i)
		began := time.Now()
		if _, err := d.node.NodePublishVolume(d.t.Context(), d.request(pod, id)); err != nil {
			return own, err
		}
		published := time.Now()
		unpublish := testbed.Unpublish(id, d.target(pod))
		if _, err := d.node.NodeUnpublishVolume(d.t.Context(), unpublish); err != nil {
			return own, err
		}
		own.publish = append(own.publish, published.Sub(began))
		own.unpublish = append(own.unpublish, time.Since(published))
	}
	return own, nil
}

func p99(latencies []time.Duration) time.Duration {
	slices.Sort(latencies)
	if len(latencies) == 0 {
		return 0
	}
	return latencies[len(latencies)*99/100]
}

func median(numbers []float64) float64 {
	sorted := slices.Sorted(slices.Values(numbers))
	if len(sorted) == 0 {
		return 0
	}
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// memory returns a line of the status of the daemon's process, such as VmHWM, in MiB.
func (d *daemon) memory(name string) float64 {
	d.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.process.PID()))
	if err != nil {
		d.t.Fatal(err)
	}
	for line := range bytes.Lines(status) {
		var kib float64
		if _, err := fmt.Sscanf(string(line), name+": %f kB", &kib); err == nil {
			return kib / 1024
		}
	}
	d.t.Fatalf("no %s in the process's status", name)
	return 0
}
