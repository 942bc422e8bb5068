package main

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/katbox/katbox/soak/internal/local"
)

// errUsage marks an error in the command line.
var errUsage = errors.New("wrong usage")

const usage = "Usage: powercut run|check [flags]\n\n%s"

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
	flags := pflag.NewFlagSet("powercut", pflag.ContinueOnError)
	flags.SortFlags = false
	flags.Usage = func() { fmt.Fprintf(os.Stderr, usage, flags.FlagUsages()) }
	flags.StringVar(&o.dir, "dir", "", "a directory on the disk that loses its power, for everything (required)")
	flags.StringVar(&o.logs, "logs", os.TempDir(), "a directory for the daemons' logs")
	flags.StringVar(&o.daemon, "daemon", "", "the katbox binary (default: katbox beside this binary)")
	flags.Uint64Var(&o.seed, "seed", 0, "run: decides what pods do, but not when it happens (default: a new one)")
	flags.StringVar(&o.acks, "acks", "acks", "check: the file with what run printed")
	flags.DurationVar(&o.lifespan, "lifespan", 2*time.Second, "check: the daemons' --afterlifespan")
	flags.DurationVar(&o.grace, "orphan-grace", 3*time.Second, "check: the daemons' --orphan-grace")
	flags.DurationVar(&o.tolerance, "tolerance", 10*time.Second, "check: how long after its deadline data may still be there")
	backends := flags.StringSlice("local", []string{string(local.Image), string(local.ProjectQuota)},
		"the backends of the local pools; projectQuota needs a disk that is mounted with prjquota, and an empty list is none")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return o, err
		}
		return o, fmt.Errorf("%w: %w", errUsage, err)
	}
	if flags.NArg() != 1 || flags.Arg(0) != "run" && flags.Arg(0) != "check" {
		return o, fmt.Errorf("%w: say run or check, once", errUsage)
	}
	o.half = flags.Arg(0)
	o.pools = make(map[string]local.Backend)
	for _, b := range *backends {
		if b != string(local.Image) && b != string(local.ProjectQuota) {
			return o, fmt.Errorf("%w: --local: %q is no backend that is played; there are image and projectQuota", errUsage, b)
		}
		o.pools[strings.ToLower(b)] = local.Backend(b)
	}
	if o.seed == 0 {
		o.seed = newSeed()
	}
	return o, o.complete()
}

func (o *options) complete() error {
	if o.daemon == "" {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("find the daemon: %w; name it with --daemon", err)
		}
		o.daemon = filepath.Join(filepath.Dir(self), "katbox")
	}
	if _, err := os.Stat(o.daemon); err != nil {
		return fmt.Errorf("%w: the daemon: %w", errUsage, err)
	}
	if o.dir == "" {
		return fmt.Errorf("%w: --dir is missing", errUsage)
	}
	// The mount table has no symlinks, and names are compared with it.
	var err error
	if o.dir, err = filepath.EvalSymlinks(o.dir); err != nil {
		return fmt.Errorf("%w: --dir: %w", errUsage, err)
	}
	if o.dir, err = filepath.Abs(o.dir); err != nil {
		return fmt.Errorf("%w: --dir: %w", errUsage, err)
	}
	return nil
}

func newSeed() uint64 {
	var bytes [4]byte
	// It never fails.
	_, _ = rand.Read(bytes[:])
	return uint64(binary.BigEndian.Uint32(bytes[:])) + 1
}
