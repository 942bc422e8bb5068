package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/pause"
)

// run is a run from its beginning to its end.
type run struct {
	o           options
	found       *findings
	kube        kubernetes
	array       *array
	programs    *programs
	provisioner *provisioner
	node        *node
	// outside is a directory that symlinks lead to.
	outside string

	mu sync.Mutex
	// volumes are those that there are, by their IDs.
	volumes map[string]*volume
	// begun counts the volumes of each kind; lived those that came to their end.
	begun           map[string]int
	lived, expanded int
}

// play plays a run. The error has what was found broken.
func play(ctx context.Context, o options, out io.Writer) error {
	r := &run{o: o, found: newFindings(out), outside: filepath.Join(o.dir, "outside"), volumes: map[string]*volume{}, begun: map[string]int{}}
	stop, err := r.start(ctx)
	defer stop()
	if err != nil {
		return err
	}
	r.found.say("seed %d, for %s, with %d volumes at a time", o.seed, o.length, o.parallel)
	meanwhile, end := context.WithCancel(ctx)
	var side sync.WaitGroup
	side.Go(func() { r.watch(meanwhile) })
	r.churn(ctx)
	if ctx.Err() == nil {
		r.nothingLeft(ctx)
		r.onlyOnce(ctx)
	}
	end()
	side.Wait()
	r.tell()
	return errors.Join(context.Cause(ctx), r.found.err())
}

// start starts everything. What has been started is to be stopped also after an error.
func (r *run) start(ctx context.Context) (stop func(), err error) {
	var stops []func()
	stop = func() {
		for _, one := range slices.Backward(stops) {
			one()
		}
	}
	if err := os.MkdirAll(r.outside, 0o755); err != nil {
		return stop, err
	}
	if r.array, err = startArray(r.o); err != nil {
		return stop, err
	}
	stops = append(stops, r.array.stop)
	// What is staged goes on where it was when the array's portal moves.
	if err := r.array.order(ctx, "PATCH", "settings", `{"bothPortals":true}`); err != nil {
		return stop, err
	}
	if r.kube, err = startKubernetes(ctx, r.array.endpoint()); err != nil {
		return stop, err
	}
	stops = append(stops, r.kube.Close)
	root := filepath.Join(r.o.dir, "kubelet")
	if r.programs, err = newPrograms(r.o, root, r.kube); err != nil {
		return stop, err
	}
	stops = append(stops, r.programs.kill)
	if err := r.programs.start(ctx); err != nil {
		return stop, err
	}
	if r.provisioner, err = newProvisioner(r.programs); err != nil {
		return stop, err
	}
	stops = append(stops, r.provisioner.close)
	if r.node, err = startNode(root, r.programs, r.found); err != nil {
		return stop, err
	}
	stops = append(stops, r.node.stop)
	return stop, r.known(ctx)
}

// known waits until the daemon has said how its node is reached.
func (r *run) known(ctx context.Context) error {
	patient, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("the daemon has not made its PoolNode after %s", patience))
	defer cancel()
	return pause.Until(patient, look, func() (bool, error) {
		nodes, err := r.kube.list(patient, "poolnodes")
		return err != nil || slices.ContainsFunc(nodes, func(o object) bool { return o.Metadata.Name == nodeName }), err
	})
}

// churn has volumes live and die, and the faults meanwhile.
func (r *run) churn(ctx context.Context) {
	numbers := make(chan int)
	var lives sync.WaitGroup
	for range r.o.parallel {
		lives.Go(func() {
			for n := range numbers {
				r.life(ctx, n)
			}
		})
	}
	breaking, whole := context.WithCancel(ctx)
	var faults sync.WaitGroup
	if r.o.faults {
		faults.Go(func() { r.breakThings(breaking, ctx) })
	}
	until := time.After(r.o.length)
	for n := 0; ; n++ {
		select {
		case numbers <- n:
			continue
		case <-until:
		case <-ctx.Done():
		}
		break
	}
	whole()
	faults.Wait()
	r.found.say("no new volumes and no faults any more")
	close(numbers)
	lives.Wait()
}

func (r *run) counted(kind string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun[kind]++
}

// onArray is what the array calls a volume.
func (r *run) onArray(ctx context.Context, v *volume) (id string, err error) {
	all, err := r.kube.list(ctx, "poolvolumes")
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(all, func(o object) bool { return o.Metadata.Name == v.id })
	if i < 0 || all[i].Status.ID == "" {
		return "", fmt.Errorf("volume %s has no PoolVolume with the ID of a volume on the array", v.id)
	}
	return all[i].Status.ID, nil
}

// tell sums up.
func (r *run) tell() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, kind := range slices.Sorted(maps.Keys(r.begun)) {
		r.found.say("%d volumes %s", r.begun[kind], kind)
	}
	r.found.say("%d volumes came to their end, with those of snapshots; %d were expanded", r.lived, r.expanded)
	for _, p := range append(slices.Clone(history.Promises), Once) {
		if n := r.found.Number(p); n > 0 {
			r.found.say("broken %d times: %s", n, p)
		}
	}
	if r.found.Sum() == 0 {
		r.found.say("no promise was broken")
	}
}
