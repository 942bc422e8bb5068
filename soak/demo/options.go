package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"
)

// errUsage marks an error in the command line.
var errUsage = errors.New("wrong usage")

// shortestLifespan is what a fast machine needs for the story.
const shortestLifespan = 5 * time.Second

// options says what to do.
type options struct {
	daemon   string
	lifespan time.Duration
	readme   string
}

// parseOptions reads the command line. The error is pflag.ErrHelp, or wraps
// errUsage.
func parseOptions(args []string) (options, error) {
	var o options
	flags := pflag.NewFlagSet("demo", pflag.ContinueOnError)
	flags.SortFlags = false
	flags.Usage = func() { fmt.Fprintf(os.Stderr, "Usage: demo [flags]\n\n%s", flags.FlagUsages()) }
	flags.StringVar(&o.daemon, "daemon", "", "the katbox binary (default: katbox beside this binary)")
	flags.DurationVar(&o.lifespan, "lifespan", 15*time.Second, "how long files outlive their pod; a slow machine needs longer")
	flags.StringVar(&o.readme, "readme", "", "write what the demo prints into this page, between the lines <!-- demo --> and <!-- /demo -->")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return o, err
		}
		return o, fmt.Errorf("%w: %w", errUsage, err)
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("%w: unexpected argument %q, there are only flags", errUsage, flags.Arg(0))
	case o.lifespan < shortestLifespan || o.lifespan%time.Second != 0:
		return o, fmt.Errorf("%w: --lifespan is %s; it has to be whole seconds, at least %s", errUsage, o.lifespan, shortestLifespan)
	}
	return o, nil
}

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
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return "", fmt.Errorf("%w: %s is not a program; run make demo, which builds it, or name it with --daemon", errUsage, path)
	}
	return path, nil
}
