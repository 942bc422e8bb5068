package wallclock

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestNothingIsLeft kills 200 programs, at once or while they ask for the time.
func TestNothingIsLeft(t *testing.T) {
	needRights(t)
	var c Clock
	run := func(pause time.Duration) {
		cmd := program("busy")
		if err := c.Start(cmd); err != nil {
			t.Fatal(err)
		}
		time.Sleep(pause)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	// What the runtime opens once and keeps.
	run(0)
	before := count(t)
	for i := range 200 {
		c.Set(time.Duration(i%2) * tenYears)
		run(time.Duration(i%4) * 15 * time.Millisecond)
	}
	var after leftover
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		// The first may not have been cleared away when it was counted.
		after = count(t)
		if after.descriptors <= before.descriptors && after.goroutines <= before.goroutines && after.threads == 0 {
			return
		}
	}
	t.Errorf("left: %+v, after one program: %+v", after, before)
}

// leftover counts what a program under a clock needs in this process.
type leftover struct{ descriptors, goroutines, threads int }

func count(t *testing.T) leftover {
	t.Helper()
	descriptors, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	l := leftover{descriptors: len(descriptors), goroutines: runtime.NumGoroutine()}
	tasks, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		// 2 stands for a filter.
		if statusField(t, task, "Seccomp") == "2" {
			l.threads++
		}
	}
	return l
}

// statusField is a field of proc(5)'s status file, empty when the task is gone.
func statusField(t *testing.T, path, name string) string {
	t.Helper()
	status, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.ESRCH) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
