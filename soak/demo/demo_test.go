package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/soak/internal/host"
	"github.com/katbox/katbox/soak/internal/launch"
	"github.com/katbox/katbox/soak/internal/mounttest"
	"github.com/katbox/katbox/soak/internal/readme"
)

// demoPage holds what the demo prints.
const demoPage = "../../deploy/docs/demo.md"

// lifespans are tried one after the other: a slow machine needs a longer one.
var lifespans = []string{"8s", "30s", "2m"}

// play is one run of the program, with a temporary directory of its own.
type play struct {
	command        *exec.Cmd
	stdout, stderr bytes.Buffer
	temp           string
}

// programs builds both programs once, into a directory that TestMain removes.
var programs = sync.OnceValues(func() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "demo-bin-"); err != nil {
		return "", err
	}
	builtIn = dir
	build := exec.Command("go", "build", "-trimpath", "-o", dir, "github.com/katbox/katbox/cmd/katbox", "github.com/katbox/katbox/soak/demo")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return dir, fmt.Errorf("%w: %s", err, out)
	}
	return dir, nil
})

// builtIn is the directory of the programs, empty if no test needed them.
var builtIn string

func TestMain(m *testing.M) {
	code := m.Run()
	if builtIn != "" {
		os.RemoveAll(builtIn)
	}
	os.Exit(code)
}

// build returns the directory where both programs are.
func build(t *testing.T) string {
	t.Helper()
	mounttest.Need(t)
	bin, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

// prepare makes a run that is not started yet.
func prepare(t *testing.T, bin string, args ...string) *play {
	t.Helper()
	// The path of t.TempDir may be too long for a socket.
	temp, err := os.MkdirTemp("", "demo-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mounttest.ClearAway(t, temp) })
	p := &play{command: exec.CommandContext(t.Context(), filepath.Join(bin, "demo"), args...), temp: temp}
	p.command.Env = append(os.Environ(), "TMPDIR="+temp)
	p.command.Stdout, p.command.Stderr = &p.stdout, &p.stderr
	return p
}

// in makes the run that of a user with the given ID, in a user namespace of its
// own: what it does not map, that user may not.
func (p *play) in(t *testing.T, uid int) {
	t.Helper()
	attr := &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: os.Getegid(), Size: 1}},
	}
	try := exec.Command("true")
	try.SysProcAttr = attr
	if err := try.Run(); err != nil {
		t.Skip("this machine lacks user namespaces:", err)
	}
	p.command.SysProcAttr = attr
}

// checkEnd checks the exit code, and that nothing is left.
func (p *play) checkEnd(t *testing.T, code int) {
	t.Helper()
	if got := p.command.ProcessState.ExitCode(); got != code {
		t.Errorf("exit code %d, want %d: %s%s", got, code, p.stdout.String(), p.stderr.String())
	}
	if left, err := os.ReadDir(p.temp); err != nil || len(left) > 0 {
		t.Errorf("in the temporary directory is left: %v, %v", left, err)
	}
	if mounts, err := host.MountsBelow(p.temp); err != nil || len(mounts) > 0 {
		t.Errorf("mounts are left: %v, %v", mounts, err)
	}
}

// TestPageShowsTheDemo plays the demo and compares what it prints with what the
// page of the demo says that it prints.
func TestPageShowsTheDemo(t *testing.T) {
	bin := build(t)
	t.Parallel()
	page, err := os.ReadFile(demoPage)
	if err != nil {
		t.Fatal(err)
	}
	shown, err := readme.Part(string(page), readmePart)
	if err != nil {
		t.Fatal(err)
	}
	printed := block(untilFastEnough(t, bin, func(*play) {}))
	if normal(printed) == normal(shown) {
		return
	}
	t.Errorf("make demo does not print what deploy/docs/demo.md shows; run make demo FLAGS=\"--readme deploy/docs/demo.md\". "+
		"It prints:\n%s", printed)
	for i, line := range strings.Split(normal(printed), "\n") {
		if lines := strings.Split(normal(shown), "\n"); i >= len(lines) || lines[i] != line {
			t.Fatalf("line %d is %q, and on the page:\n%q", i+1, line, lines[min(i, len(lines)-1)])
		}
	}
}

// TestOrdinaryUser plays the demo as a user without any rights.
func TestOrdinaryUser(t *testing.T) {
	bin := build(t)
	t.Parallel()
	untilFastEnough(t, bin, func(p *play) { p.in(t, 1000) })
}

// untilFastEnough plays the demo with ever longer lifespans, and returns what it
// prints.
func untilFastEnough(t *testing.T, bin string, change func(*play)) string {
	t.Helper()
	for _, lifespan := range lifespans {
		p := prepare(t, bin, "--lifespan", lifespan)
		change(p)
		if err := p.command.Run(); err != nil && strings.Contains(p.stderr.String(), errSlow.Error()) {
			t.Logf("too slow for a lifespan of %s", lifespan)
			p.checkEnd(t, launch.Failed)
			continue
		}
		p.checkEnd(t, launch.Done)
		if p.stderr.Len() > 0 {
			t.Errorf("on stderr: %s", p.stderr.String())
		}
		return p.stdout.String()
	}
	t.Fatal("this machine is too slow")
	return ""
}

// TestInterrupted ends the demo in the middle: by Ctrl-C, as a terminal does it, by
// closing the terminal, and by a reader of the output that goes away.
func TestInterrupted(t *testing.T) {
	bin := build(t)
	signal := func(s unix.Signal) func(*play, io.Closer) error {
		return func(p *play, _ io.Closer) error { return unix.Kill(-p.command.Process.Pid, s) }
	}
	closed := func(_ *play, output io.Closer) error { return output.Close() }
	for name, test := range map[string]struct {
		after string
		how   func(*play, io.Closer) error
	}{
		"at the start":       {"This is a node", signal(unix.SIGINT)},
		"in the middle":      {"Why did", signal(unix.SIGINT)},
		"at the end":         {"expires:", signal(unix.SIGINT)},
		"terminal is closed": {"Why did", signal(unix.SIGHUP)},
		"nobody reads on":    {"This is a node", closed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// It is interrupted long before the lifespan is over, also by a slow machine.
			prepare(t, bin, "--lifespan", "1m").interrupt(t, test.after, test.how)
		})
	}
}

// interrupt runs the demo and does something once it has printed a text.
func (p *play) interrupt(t *testing.T, after string, how func(*play, io.Closer) error) {
	t.Helper()
	p.command.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	p.command.Stdout = nil
	output, err := p.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	chunk, done := make([]byte, 4096), false
	for err == nil {
		var n int
		n, err = output.Read(chunk)
		p.stdout.Write(chunk[:n])
		if !done && strings.Contains(p.stdout.String(), after) {
			done = true
			if err := how(p, output); err != nil {
				t.Error(err)
			}
		}
	}
	// The exit code is checked below.
	_ = p.command.Wait()
	p.checkEnd(t, launch.Interrupted)
	if got := p.stderr.String(); got != "demo: "+errInterrupted.Error()+"\n" {
		t.Errorf("on stderr: %q", got)
	}
}

// TestFailure: the demo says what went wrong.
func TestFailure(t *testing.T) {
	bin := build(t)
	t.Parallel()
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte("#!/bin/sh\necho some words\nexit 7\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	p := prepare(t, bin, "--daemon", broken)
	// The exit code is checked below.
	_ = p.command.Run()
	p.checkEnd(t, launch.Failed)
	if got := p.stderr.String(); !strings.Contains(got, "exit status 7") || !strings.Contains(got, "some words") {
		t.Errorf("on stderr: %s", got)
	}
}

// TestProgramIsInterrupted: what a terminal sends to all may end a program of the demo before the demo knows of it.
func TestProgramIsInterrupted(t *testing.T) {
	bin := build(t)
	for name, test := range map[string]struct {
		code   int
		stderr string
	}{
		"INT":  {launch.Interrupted, "demo: " + errInterrupted.Error() + "\n"},
		"HUP":  {launch.Interrupted, "demo: " + errInterrupted.Error() + "\n"},
		"SEGV": {launch.Failed, "signal: segmentation fault"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ended := filepath.Join(t.TempDir(), "ended")
			if err := os.WriteFile(ended, []byte("#!/bin/sh\nkill -"+name+" $$\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			p := prepare(t, bin, "--daemon", ended)
			// The exit code is checked below.
			_ = p.command.Run()
			p.checkEnd(t, test.code)
			if got := p.stderr.String(); !strings.Contains(got, test.stderr) {
				t.Errorf("on stderr: %q", got)
			}
		})
	}
}

// TestNoNamespaces plays the demo where there are neither root's rights nor user
// namespaces.
func TestNoNamespaces(t *testing.T) {
	bin := build(t)
	t.Parallel()
	p := prepare(t, bin)
	p.in(t, 0)
	p.command.Path = "/bin/sh"
	p.command.Args = []string{"sh", "-c", `echo 0 > /proc/sys/user/max_mnt_namespaces && exec "$0"`, filepath.Join(bin, "demo")}
	// The exit code is checked below.
	_ = p.command.Run()
	p.checkEnd(t, launch.Failed)
	got := p.stderr.String()
	if strings.Count(got, "\n") != 1 || !strings.Contains(got, "run it as root") || !strings.Contains(got, "user.max_user_namespaces") {
		t.Errorf("on stderr: %s", got)
	}
}
