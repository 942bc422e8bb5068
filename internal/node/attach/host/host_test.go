package host

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/testing/roottest"
)

func TestRun(t *testing.T) {
	for _, tt := range []struct {
		name   string
		args   []string
		input  string
		output string
		exit   int
	}{
		{name: "both outputs", args: []string{"-c", "echo a; echo b >&2"}, output: "a\nb"},
		{name: "exit status", args: []string{"-c", "echo why; exit 3"}, output: "why", exit: 3},
		{name: "input", args: []string{"-c", "cat"}, input: "a secret", output: "a secret"},
		{name: "environment", args: []string{"-c", "echo $LC_ALL $HOME; pwd"}, output: "C\n/"},
		{name: "long output", args: []string{"-c", "head -c 1000000 /dev/zero | tr '\\0' x"}, output: strings.Repeat("x", largest)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			program := Program{Name: "sh", Args: tt.args}
			if tt.input != "" {
				program.Input = []byte(tt.input)
			}
			output, err := Root("").Run(t.Context(), program)
			if output != tt.output {
				t.Errorf("output %.200q, want %.200q", output, tt.output)
			}
			var status *exec.ExitError
			if tt.exit == 0 && err != nil || tt.exit != 0 && (!errors.As(err, &status) || status.ExitCode() != tt.exit) {
				t.Errorf("%v, want exit status %d", err, tt.exit)
			}
			if tt.exit != 0 && !strings.Contains(err.Error(), tt.output) {
				t.Errorf("%v does not say %q", err, tt.output)
			}
		})
	}
}

// TestChildHoldsTheOutput: a program that starts a service, which goes on, is not waited for until the service ends,
// and does not succeed with half an output.
func TestChildHoldsTheOutput(t *testing.T) {
	defer func(d time.Duration) { waitDelay = d }(waitDelay)
	waitDelay = time.Millisecond
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	// The child ends when the test closes the pipe.
	end, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer end.Close()
	leaves := Program{Name: "sh", Args: []string{"-c", "cat " + fifo + " & exit 0"}}
	if _, err := Root("").Run(t.Context(), leaves); !errors.Is(err, exec.ErrWaitDelay) {
		t.Errorf("%v, want %v", err, exec.ErrWaitDelay)
	}
}

func TestMissingProgram(t *testing.T) {
	_, err := Root("").Run(t.Context(), Program{Name: "no-such-program"})
	if !errors.Is(err, ErrNoProgram) || !strings.Contains(err.Error(), "no-such-program") {
		t.Error(err)
	}
}

func TestEndOfTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	fifo := filepath.Join(t.TempDir(), "started")
	if out, err := exec.Command("mkfifo", fifo).CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	go func() {
		_, _ = os.ReadFile(fifo)
		cancel()
	}()
	// The shell replaces itself, so that no child of it holds the output open.
	_, err := Root("").Run(ctx, Program{Name: "sh", Args: []string{"-c", `echo >"$0"; exec sleep 1000`, fifo}})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestChroot runs a program in another root, which has one file more.
func TestChroot(t *testing.T) {
	roottest.Need(t)
	root := t.TempDir()
	for _, dir := range []string{"usr", "bin", "sbin", "lib", "lib64"} {
		own := filepath.Join(root, dir)
		if link, err := os.Readlink("/" + dir); err == nil {
			if err := os.Symlink(link, own); err != nil {
				t.Fatal(err)
			}
		} else if _, err := os.Stat("/" + dir); err == nil {
			if err := os.Mkdir(own, 0o755); err != nil {
				t.Fatal(err)
			}
			roottest.Bind(t, "/"+dir, own)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "only-here"), []byte("yes"), 0o600); err != nil {
		t.Fatal(err)
	}
	if output, err := Root(root).Run(t.Context(), Program{Name: "cat", Args: []string{"/only-here"}}); err != nil || output != "yes" {
		t.Errorf("%q, %v", output, err)
	}
}
