package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/katbox/katbox/soak/internal/launch"
	"github.com/katbox/katbox/soak/internal/local"
)

// options says what to do, by the same flags for both halves.
type options struct {
	half string
	// dir is on the disk that loses its power, logs is not.
	dir       string
	logs      string
	daemon    string
	seed      uint64
	acks      string
	lifespan  time.Duration
	grace     time.Duration
	tolerance time.Duration
	// pools are the local pools by their classes.
	pools map[string]local.Backend
}

func parseOptions(args []string) (options, error) {
	var o options
	flags := launch.Flags("powercut run|check")
	flags.StringVar(&o.dir, "dir", "", "a directory on the disk that loses its power, for everything (required)")
	flags.StringVar(&o.logs, "logs", os.TempDir(), "a directory for the daemons' logs")
	flags.StringVar(&o.daemon, "daemon", "", "the katbox binary (default: katbox beside this binary)")
	launch.AddSeed(flags, &o.seed, "run: decides what pods do, but not when it happens")
	flags.StringVar(&o.acks, "acks", "acks", "check: the file with what run printed")
	flags.DurationVar(&o.lifespan, "lifespan", 2*time.Second, "check: the daemons' --afterlifespan")
	flags.DurationVar(&o.grace, "orphan-grace", 3*time.Second, "check: the daemons' --orphan-grace")
	flags.DurationVar(&o.tolerance, "tolerance", 10*time.Second, "check: how long after its deadline data may still be there")
	backends := flags.StringSlice("local", []string{string(local.Image), string(local.ProjectQuota)},
		"the backends of the local pools; projectQuota needs a disk that is mounted with prjquota, and an empty list is none")
	if len(args) > 0 && (args[0] == "run" || args[0] == "check") {
		o.half, args = args[0], args[1:]
	}
	if err := launch.Parse(flags, args); err != nil {
		return o, err
	}
	if o.half == "" {
		return o, fmt.Errorf("%w: say run or check first", launch.ErrUsage)
	}
	o.pools = make(map[string]local.Backend)
	for _, b := range *backends {
		if b != string(local.Image) && b != string(local.ProjectQuota) {
			return o, fmt.Errorf("%w: --local: %q is no backend that is played; there are image and projectQuota", launch.ErrUsage, b)
		}
		o.pools[strings.ToLower(b)] = local.Backend(b)
	}
	return o, o.complete()
}

func (o *options) complete() error {
	var err error
	if o.daemon, err = launch.Daemon(o.daemon, "katbox", "make build"); err != nil {
		return err
	}
	if o.dir == "" {
		return fmt.Errorf("%w: --dir is missing", launch.ErrUsage)
	}
	// The mount table has no symlinks, and names are compared with it.
	if o.dir, err = filepath.EvalSymlinks(o.dir); err != nil {
		return fmt.Errorf("%w: --dir: %w", launch.ErrUsage, err)
	}
	if o.dir, err = filepath.Abs(o.dir); err != nil {
		return fmt.Errorf("%w: --dir: %w", launch.ErrUsage, err)
	}
	return nil
}
