package main

import (
	"fmt"
	"time"

	"github.com/katbox/katbox/soak/internal/launch"
)

// options say what to play, and what must come out.
type options struct {
	controller, fakearray string
	arrays, volumes       int
	latency               time.Duration
	window                time.Duration
	claims, parallel      int
	readyWithin           time.Duration
	mostCPU, mostMiB      float64
	verbose               bool
}

// mostVolumes is how many volumes of an array have names of their own here.
const mostVolumes = 100_000

func parseOptions(args []string) (options, error) {
	var o options
	flags := launch.Flags("poolscale")
	flags.StringVar(&o.controller, "controller", "bin/katbox-controller", "the controller's program")
	flags.StringVar(&o.fakearray, "fakearray", "bin/fakearray", "the program of the arrays")
	flags.IntVar(&o.arrays, "arrays", 20, "number of arrays")
	flags.IntVar(&o.volumes, "volumes", 10_000, "number of volumes of each")
	flags.DurationVar(&o.latency, "latency", 20*time.Millisecond, "how long an array waits before it begins with a request")
	flags.DurationVar(&o.window, "window", 3*time.Minute, "for how long the cost of the health checks is measured")
	flags.IntVar(&o.claims, "claims", 1000, "number of volumes that are made and deleted at the end")
	flags.IntVar(&o.parallel, "parallel", 50, "how many of them at the same time")
	flags.DurationVar(&o.readyWithin, "ready-within", time.Minute, "when all pools must be Ready")
	flags.Float64Var(&o.mostCPU, "most-cpu", 2, "what the health checks may cost, in percent of a core")
	flags.Float64Var(&o.mostMiB, "most-memory", 400, "how much memory the controller may have, in MiB")
	flags.BoolVar(&o.verbose, "verbose", false, "show the controller's log")
	if err := launch.Parse(flags, args); err != nil {
		return o, err
	}
	if o.arrays < 1 || o.arrays > 99 || o.volumes < 0 || o.volumes > mostVolumes || o.claims < 0 || o.parallel < 1 || o.window < time.Second {
		return o, fmt.Errorf("%w: a number is out of its range", launch.ErrUsage)
	}
	return o, nil
}
