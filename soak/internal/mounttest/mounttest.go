// Package mounttest is for the soak's tests that mount: it skips them where
// nobody has said that they may, and clears away what they left.
package mounttest

import (
	"errors"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/soak/internal/host"
)

// Need skips a test where nobody has said that it may mount.
func Need(t testing.TB) {
	t.Helper()
	if os.Getenv("KATBOX_ROOT_TESTS") != "1" {
		t.Skip("it mounts; run it with make test-root")
	}
}

// ClearAway unmounts what is mounted below a directory and on it, and removes it.
// Nothing is removed from under a mount.
func ClearAway(t testing.TB, dir string) {
	t.Helper()
	mounts, err := host.MountsBelow(dir)
	if err != nil {
		t.Error(err)
		return
	}
	points := []string{}
	if mounted, err := host.MountedAt(dir); err != nil {
		t.Error(err)
		return
	} else if mounted {
		points = append(points, dir)
	}
	for _, m := range mounts {
		points = append(points, m.Point)
	}
	for _, point := range slices.Backward(points) {
		if err := unmountWhenFree(point); err != nil {
			t.Error(err)
			return
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Error(err)
	}
}

// unmountWhenFree waits for the kernel, which lets go of a socket's directory
// when the last connection is closed for good.
func unmountWhenFree(path string) error {
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if err := host.Unmount(path); !errors.Is(err, unix.EBUSY) || time.Now().After(deadline) {
			return err
		}
	}
}

// Unforked calls f, which opens and closes files on a mount, while no process is started. Between fork
// and exec a new process has the files open, too, and would keep the mount from being taken away.
func Unforked(f func()) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	f()
}
