package launch

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"
)

// Flags returns the flags of a program, which --help shows in the order in which they are added.
func Flags(name string) *pflag.FlagSet {
	flags := pflag.NewFlagSet(name, pflag.ContinueOnError)
	flags.SortFlags = false
	return flags
}

// AddSeed adds the flag --seed. A seed that is not given is drawn, short enough to be typed again; the program prints it.
func AddSeed(flags *pflag.FlagSet, seed *uint64, what string) {
	flags.Uint64Var(seed, "seed", uint64(rand.Uint32()), what+" (default: a new one, printed first)")
	flags.Lookup("seed").DefValue = "0"
}

// Parse reads a command line of flags alone. The error is pflag.ErrHelp, or wraps [ErrUsage].
func Parse(flags *pflag.FlagSet, args []string) error {
	switch err := flags.Parse(args); {
	case errors.Is(err, pflag.ErrHelp):
		return err
	case err != nil:
		return fmt.Errorf("%w: %w", ErrUsage, err)
	case flags.NArg() > 0:
		return fmt.Errorf("%w: unexpected argument %q, there are only flags", ErrUsage, flags.Arg(0))
	}
	return nil
}

// Daemon returns the absolute path of the daemon's program: path, which --daemon gave, or else the one of this name
// beside the program that runs, which the command build makes. The error wraps [ErrUsage] if it cannot be run.
func Daemon(path, name, build string) (string, error) {
	if path == "" {
		self, err := os.Executable()
		if err != nil {
			return "", fmt.Errorf("find the daemon beside this program: %w; name it with --daemon", err)
		}
		path = filepath.Join(filepath.Dir(self), name)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("the daemon %s: %w", path, err)
	}
	switch info, err := os.Stat(path); {
	case err != nil:
		return "", fmt.Errorf("%w: the daemon: %w; build it with \"%s\", or name it with --daemon", ErrUsage, err, build)
	case !info.Mode().IsRegular() || info.Mode()&0o111 == 0:
		return "", fmt.Errorf("%w: the daemon: %s is not a program; name another with --daemon", ErrUsage, path)
	}
	return path, nil
}
