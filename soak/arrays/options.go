package main

import (
	"fmt"
	"net/http"
	"time"

	"github.com/katbox/katbox/soak/internal/launch"
)

// options say what to play.
type options struct {
	daemon, controller, fakearray string
	dir, nodeAddress              string
	seed                          uint64
	length                        time.Duration
	parallel                      int
	kinds                         []string
	faults                        bool

	// serial is the array's: several of a machine have different ones.
	serial int
	// What the tests break: what is between the controller and the array, and what happens to a volume's
	// data on the array while nothing uses it.
	between func(next http.Handler) http.Handler
	meddle  func(arrayDir, arrayID string) error
}

func parseOptions(args []string) (options, error) {
	o := options{serial: 1}
	flags := launch.Flags("arrays")
	flags.StringVar(&o.daemon, "daemon", "./katbox", "the daemon's program")
	flags.StringVar(&o.controller, "controller", "./katbox-controller", "the controller's program")
	flags.StringVar(&o.fakearray, "fakearray", "./fakearray", "the program of the array")
	flags.StringVar(&o.dir, "dir", "/mnt/0", "directory for everything, on a file system with reflinks")
	flags.StringVar(&o.nodeAddress, "node-address", "10.255.0.1", "an address of this machine, from which the array sees its clients come")
	launch.AddSeed(flags, &o.seed, "decides what happens to volumes, and the faults")
	flags.DurationVar(&o.length, "for", 2*time.Minute, "how long new volumes are made; those that there are then come to their end")
	flags.IntVar(&o.parallel, "parallel", 10, "how many volumes live at the same time")
	flags.StringSliceVar(&o.kinds, "kinds", kinds, "of which kinds volumes are")
	flags.BoolVar(&o.faults, "faults", true, "break things meanwhile")
	if err := launch.Parse(flags, args); err != nil {
		return o, err
	}
	return o, o.check()
}

func (o options) check() error {
	if o.parallel < 1 || o.length < time.Second || len(o.kinds) == 0 {
		return fmt.Errorf("%w: --parallel, --for or --kinds is too small", launch.ErrUsage)
	}
	for _, kind := range o.kinds {
		if !isKind(kind) {
			return fmt.Errorf("%w: %q is none of the kinds %q", launch.ErrUsage, kind, kinds)
		}
	}
	return nil
}
