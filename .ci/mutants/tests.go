package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// test is a function in a test binary, with what it reaches.
type test struct {
	binary  *binary
	name    string
	took    time.Duration
	reached []byte
}

// binary is that of the tests of one package.
type binary struct {
	pkg, dir, path string
	tests          []*test
}

// sandbox is where the tests run. A mutant may erase what it is not asked to, and mount where it
// should not: it has mounts and processes of its own, and can write to a small disk in memory alone.
const sandbox = `set -e
mount --make-rprivate /
mount --bind "$1" "$1"
mount -t tmpfs -o size=2g tmpfs "$1/mnt"
mkdir "$1/mnt/tmp" "$1/mnt/dev"
for d in null zero full random urandom tty; do touch "$1/mnt/dev/$d"; mount --bind "/dev/$d" "$1/mnt/dev/$d"; done
ln -s /proc/self/fd "$1/mnt/dev/fd"
chmod 1777 "$1/mnt/tmp"
mount -o remount,bind,ro /
if [ -z "$KATBOX_MUTANTS_DEVICES" ]; then mount --rbind "$1/mnt/dev" /dev; fi
mount --bind "$1/mnt/tmp" /tmp
cd "$2"
shift 2
echo made >&3
exec "$@" 3>&-`

var (
	// errFail says that a test failed.
	errFail = errors.New("fails")
	// errNoTime says that the tests did not end in time.
	errNoTime = errors.New("no end in time")
	// errInterrupted says that a signal has ended the run.
	errInterrupted = errors.New("interrupted")
)

// run runs tests of a binary, and returns their output. An error that is neither errFail nor errNoTime says nothing
// about the tests.
func (b *binary) run(ctx context.Context, box string, names []string, limit time.Duration, mutant int, reached string) (string, error) {
	timed, cancel := context.WithTimeout(ctx, limit+5*time.Second)
	defer cancel()
	if err := os.MkdirAll(filepath.Join(box, "mnt"), 0o755); err != nil {
		return "", err
	}
	// The sandbox writes to it once it is made: before that, no test has run.
	made, err := os.Create(filepath.Join(box, "made"))
	if err != nil {
		return "", err
	}
	defer made.Close()
	cmd := exec.CommandContext(timed, "unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child=KILL",
		"/bin/sh", "-c", sandbox, "sandbox", box, b.dir, b.path, "-test.run", "^("+strings.Join(names, "|")+")$", "-test.failfast",
		"-test.timeout", limit.String(), "-test.count=1")
	cmd.Env = append(os.Environ(), "KATBOX_ROOT_TESTS=1", "TMPDIR=/tmp",
		"KATBOX_MUTANT="+strconv.Itoa(mutant), "KATBOX_MUTANTS_REACHED="+reached)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.ExtraFiles = []*os.File{made}
	cmd.WaitDelay = 5 * time.Second
	// The signals of a terminal are for this process: it ends the tests, and none of them fails by a signal.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = cmd.Run()
	stat, staterr := made.Stat()
	switch {
	case ctx.Err() != nil:
		return "", errInterrupted
	case staterr != nil:
		return "", staterr
	case stat.Size() == 0:
		return "", fmt.Errorf("the sandbox cannot be made: %w: %s", err, last(out.String()))
	case timed.Err() != nil || strings.Contains(out.String(), "panic: test timed out"):
		err = errNoTime
	case err != nil:
		err = errFail
	}
	return out.String(), err
}

// measure runs each test alone, without a mutant, and all that pass together. Those that fail in the sandbox are left out.
func (b *binary) measure(ctx context.Context, mutants int) (failing []string, err error) {
	names, err := output(ctx, b.dir, b.path, "-test.list", ".")
	if err != nil {
		return nil, err
	}
	box := b.path + ".box"
	file := filepath.Join(box, "reached")
	if err := os.Mkdir(box, 0o755); err != nil {
		return nil, err
	}
	for name := range strings.FieldsSeq(string(names)) {
		if strings.HasPrefix(name, "Benchmark") {
			continue
		}
		if err := os.WriteFile(file, make([]byte, mutants), 0o600); err != nil {
			return nil, err
		}
		begun := time.Now()
		switch out, err := b.run(ctx, box, []string{name}, 3*time.Minute, -1, file); {
		case errors.Is(err, errFail), errors.Is(err, errNoTime):
			failing = append(failing, fmt.Sprintf("%s: %v: %s", name, err, last(out)))
			continue
		case err != nil:
			return nil, err
		}
		took := time.Since(begun)
		reached, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		b.tests = append(b.tests, &test{binary: b, name: name, took: took, reached: reached})
	}
	slices.SortStableFunc(b.tests, func(x, y *test) int { return int(x.took - y.took) })
	more, err := b.together(ctx, box)
	return append(failing, more...), err
}

// together runs the tests as they run against mutants: in one process. One that fails there alone is left out too,
// lest it catches mutants that it does not see.
func (b *binary) together(ctx context.Context, box string) (failing []string, err error) {
	for len(b.tests) > 1 {
		var names []string
		var sum time.Duration
		for _, t := range b.tests {
			names, sum = append(names, t.name), sum+t.took
		}
		out, err := b.run(ctx, box, names, enough(sum), -1, "")
		if !errors.Is(err, errFail) && !errors.Is(err, errNoTime) {
			return failing, err
		}
		i := slices.Index(names, first(out))
		if i < 0 {
			return nil, fmt.Errorf("tests that pass alone do not pass together: %w: %s", err, last(out))
		}
		failing = append(failing, fmt.Sprintf("%s, beside the others: %v: %s", names[i], err, last(out)))
		b.tests = slices.Delete(b.tests, i, i+1)
	}
	return failing, nil
}

// enough is how much time tests get that take so long without a mutant.
func enough(sum time.Duration) time.Duration { return 3*sum + 10*time.Second }

func last(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return strings.Join(lines[max(0, len(lines)-4):], " / ")
}

// verdict is what became of a mutant.
type verdict struct {
	mutant
	// outcome is "caught", "late" for no end in time, "passed", "unfinished" for tests that the budget left out, or "unreached".
	outcome string
	by      string
	tests   int
}

// try runs all tests that reach a mutant, the fast ones first, until one fails.
func try(ctx context.Context, box string, binaries []*binary, m mutant, budget time.Duration) (verdict, error) {
	v := verdict{mutant: m, outcome: "unreached"}
	for _, b := range binaries {
		var reaching []*test
		for _, t := range b.tests {
			if t.reached[m.n] != 0 {
				reaching = append(reaching, t)
			}
		}
		for len(reaching) > 0 {
			// A few fast ones catch most mutants.
			n, sum := 0, time.Duration(0)
			var names []string
			for n < len(reaching) && (n == 0 || sum < 2*time.Second && v.tests == 0 || sum < 20*time.Second && v.tests > 0) {
				names, sum = append(names, reaching[n].name), sum+reaching[n].took
				n++
			}
			if budget -= sum; budget < 0 && v.tests > 0 {
				v.outcome = "unfinished"
				return v, nil
			}
			reaching, v.tests = reaching[n:], v.tests+n
			out, err := b.run(ctx, box, names, enough(sum), m.n, "")
			switch {
			case errors.Is(err, errNoTime):
				v.outcome, v.by = "late", names[0]
				return v, nil
			case errors.Is(err, errFail):
				v.outcome, v.by = "caught", first(out)
				return v, nil
			case err != nil:
				return v, err
			}
			v.outcome = "passed"
		}
	}
	return v, nil
}

// first is the first test that failed.
func first(out string) string {
	for line := range strings.Lines(out) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "--- FAIL: "); ok {
			return strings.Fields(name)[0]
		}
	}
	return last(out)
}
