package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

const (
	// readOnlyShare is the share of volumes that are mounted read-only.
	readOnlyShare = 0.1
	// tolerance is how long after its deadline data may still be there.
	tolerance = 5 * time.Second
	// firstWait is how long a kubelet waits after the first failure.
	firstWait = 500 * time.Millisecond
)

// errUsage marks an error in the command line.
var errUsage = errors.New("wrong usage")

// options says what to do.
type options struct {
	// These are the command line.
	daemon   string
	pods     int
	parallel int
	volumes  int
	lifespan time.Duration
	repeat   float64
	cancel   float64
	kills    int
	seed     uint64
	dir      string
	keep     bool
	log      string
	timeout  time.Duration
	json     string
	report   string
	// These are always the constants above, but for tests.
	readOnly  float64
	tolerance time.Duration
	firstWait time.Duration
}

// parseOptions reads the command line. A seed that is not given is drawn here.
// The error is pflag.ErrHelp, or wraps errUsage.
func parseOptions(args []string) (options, error) {
	o := options{readOnly: readOnlyShare, tolerance: tolerance, firstWait: firstWait}
	flags := pflag.NewFlagSet("soak", pflag.ContinueOnError)
	flags.SortFlags = false
	flags.StringVar(&o.daemon, "daemon", "", "the katbox binary (default: katbox beside this binary)")
	flags.IntVar(&o.pods, "pods", 300, "how many pods live and die")
	flags.IntVar(&o.parallel, "parallel", 8, "how many pods at a time")
	flags.IntVar(&o.volumes, "volumes", 2, "volumes of each pod")
	flags.DurationVar(&o.lifespan, "lifespan", 20*time.Second, "the daemon's --afterlifespan")
	flags.Float64Var(&o.repeat, "repeat", 0.3, "share of calls sent twice, half of them at the same time")
	flags.Float64Var(&o.cancel, "cancel", 0.2, "share of calls cancelled midway and then repeated")
	flags.IntVar(&o.kills, "kills", 0, "how often the daemon is killed and started again")
	flags.Uint64Var(&o.seed, "seed", 0, "decides everything random (default: a new one, printed first)")
	flags.StringVar(&o.dir, "dir", "", "an empty or new directory for everything (default: a temporary one)")
	flags.BoolVar(&o.keep, "keep", false, "keep the directory; after a violation it is kept anyway")
	flags.StringVar(&o.log, "log", "daemon.log", "the daemon's log, a file name inside the directory")
	flags.DurationVar(&o.timeout, "timeout", 15*time.Minute, "give up after this time")
	flags.StringVar(&o.json, "json", "", "write the result to this file, for machines")
	flags.StringVar(&o.report, "report", "", "write the result to this file, an HTML page with charts")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return o, err
		}
		return o, fmt.Errorf("%w: %w", errUsage, err)
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("%w: unexpected argument %q, there are only flags", errUsage, flags.Arg(0))
	}
	if !flags.Changed("seed") {
		// Short enough to be typed again.
		o.seed = uint64(rand.Uint32())
	}
	return o, o.check()
}

// check refuses values that make no sense.
func (o options) check() error {
	switch {
	case o.pods < 1:
		return fmt.Errorf("%w: --pods is %d, it has to be at least 1", errUsage, o.pods)
	case o.parallel < 1:
		return fmt.Errorf("%w: --parallel is %d, it has to be at least 1", errUsage, o.parallel)
	case o.volumes < 1:
		return fmt.Errorf("%w: --volumes is %d, it has to be at least 1", errUsage, o.volumes)
	case o.lifespan <= 0:
		return fmt.Errorf("%w: --lifespan is %s, it has to be more than 0", errUsage, o.lifespan)
	case !isShare(o.repeat):
		return fmt.Errorf("%w: --repeat is %g, it has to lie between 0 and 1", errUsage, o.repeat)
	case !isShare(o.cancel):
		return fmt.Errorf("%w: --cancel is %g, it has to lie between 0 and 1", errUsage, o.cancel)
	case o.kills < 0:
		return fmt.Errorf("%w: --kills is %d, it cannot be negative", errUsage, o.kills)
	case o.timeout <= 0:
		return fmt.Errorf("%w: --timeout is %s, it has to be more than 0", errUsage, o.timeout)
	case o.log == "" || o.log == "." || o.log == ".." || strings.ContainsRune(o.log, '/'):
		return fmt.Errorf("%w: --log is %q, it has to be a plain file name", errUsage, o.log)
	}
	return o.outputs().check(o.dir)
}

// isShare tells whether f is a share; it is false for NaN.
func isShare(f float64) bool { return f >= 0 && f <= 1 }

// binary is the absolute path of the daemon's binary. Its error wraps errUsage.
func (o options) binary() (string, error) {
	path := o.daemon
	if path == "" {
		self, err := os.Executable()
		if err != nil {
			return "", fmt.Errorf("find the katbox binary beside this one: %w; name it with --daemon", err)
		}
		path = filepath.Join(filepath.Dir(self), "katbox")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("katbox binary %s: %w", o.daemon, err)
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", fmt.Errorf("%w: katbox binary: %w; build it, or name it with --daemon", errUsage, err)
	case !info.Mode().IsRegular() || info.Mode()&0o111 == 0:
		return "", fmt.Errorf("%w: katbox binary: %s is not a program; name another with --daemon", errUsage, path)
	}
	return path, nil
}
