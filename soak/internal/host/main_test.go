package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/soak/internal/launch"
)

// partVariable has the test program play another part; its last argument is a
// directory for that.
const partVariable = "KATBOX_HOST_TEST_PART"

func TestMain(m *testing.M) {
	RunHelper()
	dir := os.Args[len(os.Args)-1]
	switch part := os.Getenv(partVariable); part {
	case "":
		os.Exit(m.Run())
	case "enter":
		os.Exit(playEnter(dir))
	case "victim":
		fmt.Println(playVictim(dir))
		os.Exit(1)
	default:
		fmt.Println("unknown part", part)
		os.Exit(1)
	}
}

// entered is the exit code of a process that did all it should inside.
const entered = 42

// playEnter is a program that moves into a namespace and mounts there.
func playEnter(dir string) int {
	inside, err := Enter()
	var exit launch.Exit
	switch {
	case errors.As(err, &exit):
		return int(exit)
	case err != nil || !inside:
		fmt.Println(inside, err)
		return 1
	case os.Getenv(insideVariable) != "":
		fmt.Println("inside again: children would think so too")
		return 1
	}
	if err := mountTmpfs(dir, 1<<20, 0); err != nil {
		fmt.Println(err)
		return 1
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		fmt.Println(err)
		return 1
	}
	return entered
}

// playVictim freezes a disk for very long, says so on its standard output, and
// waits to be killed, with a write that hangs.
func playVictim(dir string) error {
	if err := Privatise(); err != nil {
		return err
	}
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		return err
	}
	d, err := MakeDisk(work, filepath.Join(dir, "disk.img"), Ext4, 16<<20, 0)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- d.Stall(context.Background(), time.Hour, time.Hour, time.Millisecond) }()
	for !d.Frozen() {
		select {
		case err := <-ended:
			return err
		case <-time.After(time.Millisecond):
		}
	}
	go func() { _ = os.WriteFile(filepath.Join(work, "file"), nil, 0o600) }()
	// A thread that hangs keeps the process from ending, and its files open.
	for !hasStuckThread() {
		time.Sleep(time.Millisecond)
	}
	fmt.Println("frozen")
	return <-ended
}

// hasStuckThread reports whether a thread of this process waits and cannot be
// killed.
func hasStuckThread() bool {
	files, _ := filepath.Glob("/proc/self/task/*/status")
	return slices.ContainsFunc(files, func(file string) bool {
		status, err := os.ReadFile(file)
		return err == nil && strings.Contains(string(status), "\nState:\tD")
	})
}

// needMounts skips a test where nobody has said that it may mount.
func needMounts(t *testing.T) {
	t.Helper()
	if os.Getenv("KATBOX_ROOT_TESTS") != "1" {
		t.Skip("this machine lacks the right to mount: KATBOX_ROOT_TESTS is not 1; make check sets it")
	}
}

// place is where a disk can be.
type place struct{ Work, Image string }

func newPlace(t *testing.T) place {
	t.Helper()
	return place{Work: t.TempDir(), Image: filepath.Join(t.TempDir(), "disk.img")}
}

// unmountAtEnd takes away what the test mounts at path, should it still be there.
func unmountAtEnd(t *testing.T, path string) {
	t.Helper()
	t.Cleanup(func() {
		for unix.Unmount(path, unix.UMOUNT_NOFOLLOW) == nil {
		}
	})
}

// await polls until it is so.
func await(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("in vain waited until %s", what)
		}
	}
}
