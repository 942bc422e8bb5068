package wallclock

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func TestExitCodeAndOutput(t *testing.T) {
	needRights(t)
	var c Clock
	c.Set(tenYears)
	cmd := exec.Command("/bin/sh", "-c", `echo "$0 $A"; date +%Y >&2; exit 5`, "argument")
	cmd.Env = []string{"A=variable"}
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := c.Start(cmd); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 5 {
		t.Errorf("the program ended with %v, want exit code 5", err)
	}
	if got, want := stdout.String(), "argument variable\n"; got != want {
		t.Errorf("the program wrote %q, want %q", got, want)
	}
	// The shell executes date, which is told the machine's time.
	if got, want := stderr.String(), time.Now().Format("2006\n"); got != want {
		t.Errorf("what the program executed wrote %q, want %q", got, want)
	}
	if cmd.SysProcAttr != nil {
		t.Errorf("cmd.SysProcAttr was left as %+v", cmd.SysProcAttr)
	}
}

func TestSignals(t *testing.T) {
	var c Clock
	c.Set(-tenYears)
	for _, signal := range []unix.Signal{unix.SIGKILL, unix.SIGTERM} {
		r := start(t, &c)
		if err := r.cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		_ = r.cmd.Wait()
		if status := r.cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != signal {
			t.Errorf("after %v: %v", signal, r.cmd.ProcessState)
		}
	}
	r := start(t, &c)
	r.order("trap")
	if err := r.cmd.Process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got, want := r.line(), "told to end"; got != want {
		t.Errorf("the program said %q, want %q", got, want)
	}
	_ = r.cmd.Wait()
	if code := r.cmd.ProcessState.ExitCode(); code != 7 {
		t.Errorf("the program that handles SIGTERM: %v, want exit code 7", r.cmd.ProcessState)
	}
}

func TestProcessIsAnOrdinaryChild(t *testing.T) {
	var c Clock
	r := start(t, &c)
	r.checkTime(0)
	pid := r.cmd.Process.Pid
	if group, err := unix.Getpgid(pid); err != nil || group != pid {
		t.Errorf("its process group is %d (%v), want %d", group, err, pid)
	}
	for name, want := range map[string]string{"TracerPid": "0", "PPid": fmt.Sprint(os.Getpid())} {
		if got := statusField(t, fmt.Sprintf("/proc/%d/status", pid), name); got != want {
			t.Errorf("its %s is %s, want %s", name, got, want)
		}
	}
}

func TestProgramStartsOthers(t *testing.T) {
	var c Clock
	c.Set(tenYears)
	r := start(t, &c)
	if got, want := r.order("shell"), "in the shell exit status 3"; got != want {
		t.Errorf("the program's own program: %q, want %q", got, want)
	}
	r.checkTime(tenYears)
}

// TestThreadOfTheCaller checks that Pdeathsig does not come when the thread that
// called Start ends.
func TestThreadOfTheCaller(t *testing.T) {
	needRights(t)
	var c Clock
	started := make(chan *running)
	onOwnThread(func() {
		// A failure ends this goroutine and not the test's.
		defer close(started)
		started <- start(t, &c)
	})
	r := <-started
	if r == nil {
		return
	}
	time.Sleep(100 * time.Millisecond)
	r.checkTime(0)
}

// TestPdeathsig checks that the program ends when who started it is killed.
func TestPdeathsig(t *testing.T) {
	needRights(t)
	cmd := program("parent")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	_ = cmd.Process.Kill()
	ended := make(chan error, 1)
	go func() {
		// The program has the other end open as well.
		_, err := io.ReadAll(lines)
		ended <- err
	}()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(2 * time.Minute):
		t.Error("the program still runs two minutes after the process that started it was killed")
	}
	_ = cmd.Wait()
}

// TestThisProcessKeepsItsClock asks the kernel, not the vDSO, on many threads.
func TestThisProcessKeepsItsClock(t *testing.T) {
	var c Clock
	c.Set(tenYears)
	r := start(t, &c)
	const threads = 50
	off := make(chan time.Duration)
	for range threads {
		onOwnThread(func() {
			var now unix.Timespec
			_, _, _ = unix.Syscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_REALTIME, uintptr(unsafe.Pointer(&now)), 0)
			off <- time.Until(time.Unix(now.Unix()))
		})
	}
	for range threads {
		if d := <-off; d > time.Hour || d < -time.Hour {
			t.Errorf("the time of a thread of this process is off by %v", d)
		}
	}
	r.checkTime(tenYears)
}
