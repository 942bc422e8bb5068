package wallclock

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestProgramThatCannotBeStarted(t *testing.T) {
	needRights(t)
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]error{filepath.Join(dir, "missing"): os.ErrNotExist, text: os.ErrPermission} {
		var c Clock
		err := c.Start(exec.Command(file))
		if !errors.Is(err, want) || !strings.Contains(err.Error(), file) {
			t.Errorf("start %s: %v, want %v", file, err, want)
		}
	}
}

// TestFailedStart checks the errors and that no process is left.
func TestFailedStart(t *testing.T) {
	needRights(t)
	t.Run("without proc", func(t *testing.T) {
		cmd := program("blocked")
		cmd.SysProcAttr.Cloneflags = unix.CLONE_NEWNS
		// A new namespace may still share its mounts with this one.
		cmd.SysProcAttr.Unshareflags = unix.CLONE_NEWNS
		checkFailure(t, cmd, "/stat: no such file or directory")
	})
	t.Run("without the right", func(t *testing.T) {
		cmd := program("deprived")
		done := make(chan struct{})
		onOwnThread(func() {
			defer close(done)
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_SYS_ADMIN, 0, 0, 0); err != nil {
				t.Error(err)
				return
			}
			checkFailure(t, cmd, "run it as root")
		})
		<-done
	})
}

func checkFailure(t *testing.T, cmd *exec.Cmd, want string) {
	t.Helper()
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if !strings.Contains(string(out), want) || !strings.HasSuffix(string(out), "\nchildren: no child processes\n") {
		t.Errorf("want an error with %q and no child, got %s", want, out)
	}
}
