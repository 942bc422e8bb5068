package clock

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

const tenYears = 3652 * 24 * time.Hour

var dir string // where the programs are built

func TestMain(m *testing.M) {
	var err error
	if dir, err = os.MkdirTemp("", "clock-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// stepped is the program that follows a clock; shipped follows the machine's.
var (
	stepped = sync.OnceValues(func() (string, error) {
		overlay, err := Overlay(filepath.Join(dir, "overlay"))
		if err != nil {
			return "", err
		}
		return build("stepped", "-overlay", overlay)
	})
	shipped = sync.OnceValues(func() (string, error) { return build("shipped") })
)

func build(name string, flags ...string) (string, error) {
	path := filepath.Join(dir, name)
	args := append([]string{"build", "-buildvcs=false", "-o", path}, flags...)
	if out, err := exec.Command("go", append(args, "./testdata/program")...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the program: %w\n%s", err, out)
	}
	return path, nil
}

// running is the program under a clock.
type running struct {
	t     *testing.T
	stdin io.Writer
	lines *bufio.Reader
}

func newClock(t *testing.T) *Clock {
	t.Helper()
	c, err := New(filepath.Join(t.TempDir(), "clock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// start starts the program until the end of the test.
func start(t *testing.T, c *Clock) *running {
	t.Helper()
	path, err := stepped()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path) // it ends with its input
	cmd.Env, cmd.Stderr = append(os.Environ(), c.Environment()), os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	return &running{t, stdin, bufio.NewReader(out)}
}

func (r *running) line() string {
	r.t.Helper()
	line, err := r.lines.ReadString('\n')
	if err != nil {
		r.t.Fatalf("read the program's answer: %v", err)
	}
	return line
}

// look has the program read its clock, which has to be the machine's plus the offset. It returns how
// long the program thinks it has been running, by the monotonic and by the wall clock.
func (r *running) look(offset time.Duration) (monotonic, wall time.Duration) {
	r.t.Helper()
	before := time.Now()
	fmt.Fprintln(r.stdin, "time")
	answer := r.line()
	after := time.Now()
	var at int64
	if _, err := fmt.Sscan(answer, &at, &monotonic, &wall); err != nil {
		r.t.Fatalf("%q: %v", answer, err)
	}
	if now := time.Unix(0, at); now.Before(before.Add(offset).Round(0)) || now.After(after.Add(offset).Round(0)) {
		r.t.Errorf("the program's time is %v, want between %v and %v", now, before.Add(offset), after.Add(offset))
	}
	return monotonic, wall
}

func TestOffsetFromTheStart(t *testing.T) {
	for _, offset := range []time.Duration{0, 1, -1, time.Second - 1, 1 - time.Second, tenYears, -tenYears, -100 * 365 * 24 * time.Hour} {
		c := newClock(t)
		c.Set(offset)
		start(t, c).look(offset)
		// The same program again, as after a crash.
		start(t, c).look(offset)
	}
}

// TestSteps: programs that run see a step by their wall clock, and by nothing else.
func TestSteps(t *testing.T) {
	c, other := newClock(t), newClock(t)
	r, elsewhere := start(t, c), start(t, other)
	began := time.Now()
	from, _ := r.look(0)
	for _, offset := range []time.Duration{tenYears, -tenYears, 0, -time.Nanosecond, time.Hour} {
		c.Set(offset)
		monotonic, wall := r.look(offset)
		if passed := monotonic - from; passed < 0 || passed > time.Since(began) {
			t.Errorf("set to %v: %v passed for the program, and %v here", offset, passed, time.Since(began))
		}
		// The machine's own two clocks may drift apart.
		if apart := (wall - monotonic - offset).Abs(); apart > time.Second {
			t.Errorf("set to %v: by its wall clock the program has been running for %v, and for %v in truth", offset, wall, monotonic)
		}
		elsewhere.look(0)
	}
}

func TestTimersKeepTheirTime(t *testing.T) {
	for _, offset := range []time.Duration{tenYears, -tenYears} {
		c := newClock(t)
		r := start(t, c)
		began := time.Now()
		fmt.Fprintln(r.stdin, "timers")
		r.line()
		c.Set(offset)
		r.line() // at all, though the clock went back
		if took := time.Since(began); took < 300*time.Millisecond {
			t.Errorf("set to %v: timers of 300ms took %v", offset, took)
		}
	}
}

func TestFollows(t *testing.T) {
	for _, test := range []struct {
		program func() (string, error)
		want    bool
	}{{stepped, true}, {shipped, false}} {
		path, err := test.program()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Follows(path); err != nil || got != test.want {
			t.Errorf("%s: %t, %v; want %t", path, got, err, test.want)
		}
	}
	if _, err := Follows(filepath.Join(dir, "missing")); err == nil {
		t.Error("a program that is missing follows a clock, or does not")
	}
}

// TestNoClock: a program that cannot follow its clock does not run on another.
func TestNoClock(t *testing.T) {
	path, err := stepped()
	if err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(dir, "no-clock")
	cmd := exec.CommandContext(t.Context(), path)
	cmd.Env = append(os.Environ(), (&Clock{path: missing}).Environment())
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), missing) {
		t.Errorf("%v: %s, want a panic that names %s", err, out, missing)
	}
	if _, err := New(filepath.Join(missing, "clock")); err == nil {
		t.Error("a clock without a file was made")
	}
}

// TestUnknownSource: a package time that looks different is no reason for a clock that stands still.
func TestUnknownSource(t *testing.T) {
	const ask = "\tsec, nsec, mono := runtimeNow()\n"
	for source, ok := range map[string]bool{ask: true, ask + ask: false, "": false} {
		if _, err := step([]byte(source)); (err == nil) != ok {
			t.Errorf("%q: %v", source, err)
		}
	}
}
