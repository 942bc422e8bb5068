package launch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestCodes: an error is said once, and what has been said is not said again.
func TestCodes(t *testing.T) {
	for _, test := range []struct {
		err  error
		code int
		said string
	}{
		{nil, Done, ""},
		{fmt.Errorf("help: %w", pflag.ErrHelp), Done, ""},
		{errors.New("no disk"), Failed, "soak: no disk\n"},
		{fmt.Errorf("%w: --pods is 0", ErrUsage), Usage, "soak: wrong usage: --pods is 0\n"},
		{Exit(Failed), Failed, ""},
		{fmt.Errorf("inside: %w", Exit(Interrupted)), Interrupted, ""},
	} {
		var said strings.Builder
		if got := code("soak", test.err, &said); got != test.code || said.String() != test.said {
			t.Errorf("%v: %d and %q, want %d and %q", test.err, got, said.String(), test.code, test.said)
		}
	}
}

func TestParse(t *testing.T) {
	for args, want := range map[string]error{
		"": nil, "--seed=7": nil, "--help": pflag.ErrHelp, "--seed=x": ErrUsage, "--odd": ErrUsage, "stray": ErrUsage,
	} {
		flags, seed := Flags("soak"), uint64(0)
		flags.Usage = func() {}
		AddSeed(flags, &seed, "decides everything")
		err := Parse(flags, strings.Fields(args))
		if !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("%q: %v, want %v", args, err, want)
		}
		if args == "--seed=7" && seed != 7 {
			t.Errorf("the seed is %d", seed)
		}
		if usage := flags.FlagUsages(); strings.Contains(usage, fmt.Sprint(seed)) && seed > 9 {
			t.Errorf("--help shows the seed that was drawn: %s", usage)
		}
	}
}

// TestSeeds: each run without one has a seed of its own, and one that is typed again easily.
func TestSeeds(t *testing.T) {
	seen := map[uint64]bool{}
	for range 100 {
		var seed uint64
		AddSeed(Flags("soak"), &seed, "")
		seen[seed] = true
		if seed >= 1<<32 {
			t.Errorf("seed %d is long", seed)
		}
	}
	if len(seen) < 90 {
		t.Errorf("%d different seeds in 100 runs", len(seen))
	}
}

func TestDaemon(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		plain: "name another with --daemon", dir: "name another with --daemon",
		filepath.Join(dir, "missing"): `build it with "make build", or name it with --daemon`, "": `build it with "make build"`,
	} {
		if _, err := Daemon(path, "none-beside", "make build"); !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want a wrong usage with %q", path, err, want)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for path, name := range map[string]string{self: "other", "": filepath.Base(self)} {
		if got, err := Daemon(path, name, "make build"); err != nil || got != self {
			t.Errorf("%q beside %q: %s, %v; want %s", path, name, got, err, self)
		}
	}
}
