package host

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/soak/internal/launch"
)

// stalled begins a Stall that would never end by itself, and returns when the
// disk is frozen.
func stalled(t *testing.T, d *Disk) (stop context.CancelFunc, ended chan error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	ended = make(chan error, 1)
	go func() { ended <- d.Stall(ctx, time.Hour, time.Hour, time.Millisecond) }()
	await(t, "the disk is frozen", d.Frozen)
	return cancel, ended
}

// write writes a file and tells when that is done.
func write(l place) chan error {
	done := make(chan error, 1)
	go func() { done <- os.WriteFile(filepath.Join(l.Work, "written"), []byte("x"), 0o600) }()
	return done
}

// within takes what comes, or fails the test.
func within(t *testing.T, what string, from chan error) error {
	t.Helper()
	select {
	case err := <-from:
		return err
	case <-time.After(2 * time.Minute):
		t.Fatalf("in vain waited for %s", what)
		return nil
	}
}

// freezers are the children of a process that freeze.
func freezers(t *testing.T, parent int) (pids []int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil || !strings.HasPrefix(string(text), helperName+"\x00") {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			t.Fatal(err)
		}
		if status, err := os.ReadFile(filepath.Dir(file) + "/status"); err == nil &&
			strings.Contains(string(status), "\nPPid:\t"+strconv.Itoa(parent)+"\n") {
			pids = append(pids, pid)
		}
	}
	return pids
}

func TestLoopStall(t *testing.T) {
	l, d := loopDisk(t, Ext4, 16<<20, 0)
	stop, ended := stalled(t, d)
	done := write(l)
	// Nothing can come of it; but without a freeze it would not last that long.
	select {
	case err := <-done:
		t.Errorf("a write went through: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	if s, err := d.Free(); err != nil || s.TotalBytes == 0 {
		t.Errorf("room while frozen: %+v, %v", s, err)
	}
	if err := d.Stall(context.Background(), time.Second, time.Second, time.Second); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("a second stall: %v", err)
	}
	if err := d.Close(); !errors.Is(err, unix.EBUSY) {
		t.Errorf("close while frozen: %v, want EBUSY", err)
	}
	for _, pid := range freezers(t, os.Getpid()) {
		for _, s := range []unix.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT} {
			if err := unix.Kill(pid, s); err != nil {
				t.Error(err)
			}
		}
	}
	if n := len(freezers(t, os.Getpid())); n != 1 || len(done) > 0 {
		t.Errorf("%d helpers after signals that do not count, %d writes went through", n, len(done))
	}
	stop()
	if err := within(t, "the end of the stall", ended); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that it was cancelled", err)
	}
	if d.Frozen() || len(freezers(t, os.Getpid())) > 0 {
		t.Errorf("after the end: frozen %t, helpers %v", d.Frozen(), freezers(t, os.Getpid()))
	}
	if err := within(t, "the write", done); err != nil {
		t.Error(err)
	}
}

// TestLoopStallGoesOnAndOff counts how often it freezes until it is over.
func TestLoopStallGoesOnAndOff(t *testing.T) {
	l, d := loopDisk(t, Ext4, 16<<20, 0)
	const step, longest = 20 * time.Millisecond, time.Minute
	// At least twice on and off, however long that takes until someone has looked.
	turns := 0
	for total := 500 * time.Millisecond; turns < 4; total *= 4 {
		begun := time.Now()
		ended := make(chan error, 1)
		go func() { ended <- d.Stall(context.Background(), total, step, step) }()
		was := false
		for turns = 0; len(ended) == 0; time.Sleep(time.Millisecond) {
			if is := d.Frozen(); is != was {
				turns, was = turns+1, is
			}
		}
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took < total {
			t.Errorf("it was over after %s, want %s", took, total)
		}
		if turns < 4 && total > longest {
			t.Fatalf("it turned %d times in %s", turns, total)
		}
	}
	if err := within(t, "a write", write(l)); err != nil {
		t.Error(err)
	}
}

func TestLoopStallEndsBeforeItBegins(t *testing.T) {
	_, d := loopDisk(t, Ext4, 16<<20, 0)
	ctx, cancel := context.WithCancelCause(context.Background())
	mine := errors.New("mine")
	cancel(mine)
	if err := d.Stall(ctx, time.Hour, time.Hour, time.Hour); !errors.Is(err, mine) {
		t.Errorf("%v, want the cause", err)
	}
	for _, times := range [][3]time.Duration{{0, 1, 1}, {1, 0, 1}, {1, 1, -1}} {
		if err := d.Stall(context.Background(), times[0], times[1], times[2]); !errors.Is(err, launch.ErrUsage) {
			t.Errorf("%v: %v, want wrong usage", times, err)
		}
	}
}

// TestLoopStallWithoutHelper kills the helper, so that it cannot thaw.
func TestLoopStallWithoutHelper(t *testing.T) {
	l, d := loopDisk(t, Ext4, 16<<20, 0)
	_, ended := stalled(t, d)
	done := write(l)
	for _, pid := range freezers(t, os.Getpid()) {
		if err := unix.Kill(pid, unix.SIGKILL); err != nil {
			t.Error(err)
		}
	}
	if err := within(t, "the end of the stall", ended); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("%v, want that the helper was killed", err)
	}
	if err := within(t, "the write", done); err != nil || d.Frozen() {
		t.Errorf("the write: %v; frozen: %t", err, d.Frozen())
	}
}

// TestLoopStallSurvivesKill kills a process whose disk is frozen, in a namespace
// that goes away with it. Frozen for ever, the disk would keep its loop device.
func TestLoopStallSurvivesKill(t *testing.T) {
	_, d := loopDisk(t, Ext4, 16<<20, 0) // skips if it cannot be had
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cmd := exec.Command("/proc/self/exe", dir)
	cmd.Env = append(os.Environ(), partVariable+"=victim")
	cmd.SysProcAttr = &unix.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	image := filepath.Join(dir, "disk.img")
	if n := devicesOf(t, image); err != nil || line != "frozen\n" || n != 1 {
		t.Errorf("the victim says %q, %v, and has %d loop devices", line, err, n)
	}
	helpers := freezers(t, cmd.Process.Pid)
	if len(helpers) != 1 {
		t.Errorf("the victim has helpers %v, want one", helpers)
	}
	t.Cleanup(func() {
		// A failure must not leave the machine with it either.
		for _, pid := range helpers {
			if root, err := os.Open("/proc/" + strconv.Itoa(pid) + "/fd/3"); err == nil {
				_ = thaw(root)
				root.Close()
			}
		}
	})
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if err := within(t, "the victim's end", ended); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("the victim: %v", err)
	}
	await(t, "the loop device is free", func() bool { return devicesOf(t, image) == 0 })
}
