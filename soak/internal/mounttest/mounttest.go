// Package mounttest is for the soak's tests that mount: it skips them where
// the environment does not allow them, and clears away what they left.
package mounttest

import (
	"os"
	"testing"
	"time"

	"github.com/katbox/katbox/soak/internal/host"
)

// Need skips a test where the environment does not allow it to mount.
func Need(t testing.TB) {
	t.Helper()
	if os.Getenv("KATBOX_ROOT_TESTS") != "1" {
		t.Skip("this machine lacks the right to mount: KATBOX_ROOT_TESTS is not 1; make check sets it")
	}
}

// ClearAway unmounts what is mounted below a directory and on it, and removes it.
// Nothing is removed from under a mount.
func ClearAway(t testing.TB, dir string) {
	t.Helper()
	mounted, err := host.MountedAt(dir)
	if err == nil {
		err = host.UnmountBelow(dir, time.Minute)
	}
	if err == nil && mounted {
		err = host.UnmountWhenFree(dir, time.Minute)
	}
	if err != nil {
		t.Error(err)
		return
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Error(err)
	}
}
