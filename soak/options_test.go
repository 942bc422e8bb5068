package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/katbox/katbox/soak/internal/launch"
	"github.com/katbox/katbox/soak/internal/workload"
)

func TestParseOptions(t *testing.T) {
	o, err := parseOptions(nil)
	if err != nil || o.name != "smoke" || o.log != "daemon.log" || o.tolerance != tolerance || o.workload.Pods == 0 {
		t.Errorf("without flags: %+v, %v; want the preset smoke", o, err)
	}
	o, err = parseOptions([]string{
		"--preset", "churn", "--pods", "300", "--parallel", "8", "--volumes", "2", "--lifespan", "20s", "--repeat", "0.3",
		"--cancel", "0.2", "--kills", "5", "--timeout", "10m", "--seed", "7",
	})
	if err != nil {
		t.Fatal(err)
	}
	w := o.workload
	if w.Pods != 300 || w.Parallel != 8 || w.Volumes.Min != 2 || w.Volumes.Max != 2 || w.Driver.Lifespan.D() != 20*time.Second ||
		w.Calls.Doubled != 0.3 || w.Calls.Cancelled != 0.2 || w.Timeout.D() != 10*time.Minute || o.seed != 7 {
		t.Errorf("the flags do not change the workload: %+v", o)
	}
	kills := 0
	for _, f := range w.Faults {
		if f.Kind == workload.DaemonKill {
			kills += f.Times
		}
	}
	if kills != 5 {
		t.Errorf("%d kills, want 5", kills)
	}
}

// TestAgain: the command line that a report gives makes the same decisions.
func TestAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "odd name.yaml")
	if err := os.WriteFile(file, []byte("pods: 40\nparallel: 4\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"--seed", "9"},
		{"--preset", "drain", "--kills", "3", "--volumes", "2"},
		{"--workload", file, "--repeat", "0.5", "--lifespan", "3s"},
	} {
		first, err := parseOptions(args)
		if err != nil {
			t.Fatal(err)
		}
		name, words := cutProgram(first.again())
		second, err := parseOptions(words)
		if err != nil || name != "soak" {
			t.Fatalf("%s: %v", first.again(), err)
		}
		var a, b bytes.Buffer
		if err := errors.Join(printPlan(&a, first.plan()), printPlan(&b, second.plan())); err != nil {
			t.Fatal(err)
		}
		if a.String() != b.String() || a.Len() == 0 {
			t.Errorf("%s does not make the same decisions as %q", first.again(), args)
		}
	}
}

// cutProgram divides a command line as a shell would, as far as quotes go.
func cutProgram(line string) (program string, args []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			args = append(args, part)
			continue
		}
		args = append(args, strings.Fields(part)...)
	}
	return args[0], args[1:]
}

func TestWrongOptions(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"--pods", "0"}, "pods"},
		{[]string{"--parallel", "-1"}, "parallel"},
		{[]string{"--repeat", "1.5"}, "doubled"},
		{[]string{"--kills", "-1"}, "--kills"},
		{[]string{"--preset", "quick"}, "quick"},
		{[]string{"--preset", "smoke", "--workload", "x.yaml"}, "--workload"},
		{[]string{"--workload", "/does/not/exist.yaml"}, "/does/not/exist.yaml"},
		{[]string{"--log", "a/b"}, "--log"},
		{[]string{"--seed", "x"}, "seed"},
		{[]string{"stray"}, "stray"},
		{[]string{"--no-such-flag"}, "no-such-flag"},
	} {
		_, err := parseOptions(test.args)
		if !errors.Is(err, launch.ErrUsage) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: %v, want a wrong usage that names %s", test.args, err, test.want)
		}
	}
	if _, err := parseOptions([]string{"--help"}); !errors.Is(err, pflag.ErrHelp) {
		t.Errorf("--help: %v", err)
	}
}

func TestBinary(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	steps := workload.Workload{Faults: []workload.Fault{{Kind: workload.ClockStep, Times: 1}}}
	for path, want := range map[string]string{"": "make bin/katbox-clock", "/bin/sh": "/bin/sh follows the machine's"} {
		if _, err := (options{daemon: path, workload: steps}).binary(); !errors.Is(err, launch.ErrUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q for a workload that steps the clock: %v, want a wrong usage with %q", path, err, want)
		}
	}
	// This program knows of clocks too.
	if got, err := (options{daemon: self, workload: steps}).binary(); err != nil || got != self {
		t.Errorf("%s, %v; want %s", got, err, self)
	}
}
