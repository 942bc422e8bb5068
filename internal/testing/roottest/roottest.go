// Package roottest helps tests that need real mounts. It decides whether a test may run,
// and unmounts at its end what it has mounted.
package roottest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// Variable is the environment variable that has to be 1 for a test to mount. With it the
// tests run in a mount namespace of their own, and fail where they may not mount.
const Variable = "KATBOX_ROOT_TESTS"

// Need lets the test go on only where it may mount: with [Variable] set, as root or
// as root of a user namespace. Without it the test is skipped.
func Need(t testing.TB) {
	t.Helper()
	if os.Getenv(Variable) != "1" {
		t.Skip("this machine lacks the right to mount: KATBOX_ROOT_TESTS is not 1; make check sets it")
	}
	dir := t.TempDir()
	err := unix.Mount(dir, dir, "", unix.MS_BIND, "")
	if err == nil {
		err = unix.Unmount(dir, unix.UMOUNT_NOFOLLOW)
	}
	if err != nil {
		t.Fatalf("roottest: %s=1, but mounting is not allowed here: %v", Variable, err)
	}
}

// Lacks skips the test: the machine lacks what, a name in .ci/needs. make check looks for it before it begins,
// and refuses a test that is skipped for what the machine has.
func Lacks(t testing.TB, what string, why ...any) {
	t.Helper()
	t.Skipf("this machine lacks %s: %s", what, fmt.Sprint(why...))
}

// Programs skips the test unless the machine has these programs.
func Programs(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			Lacks(t, name, err)
		}
	}
}

// Bind binds directory or file source on target until the end of the test.
func Bind(t testing.TB, source, target string) {
	t.Helper()
	Mount(t, source, target, "", unix.MS_BIND, "")
}

// Tmpfs mounts a new tmpfs on target until the end of the test, with the given
// flags of mount(2).
func Tmpfs(t testing.TB, target string, flags uintptr) {
	t.Helper()
	Mount(t, "katbox-test", target, "tmpfs", flags, "size=64m")
}

// Mount is mount(2) until the end of the test.
func Mount(t testing.TB, source, target, fstype string, flags uintptr, data string) {
	t.Helper()
	if err := unix.Mount(source, target, fstype, flags, data); err != nil {
		t.Fatalf("roottest: mount %s on %s: %v", source, target, err)
	}
	UnmountAtEnd(t, target)
}

// UnmountAtEnd unmounts everything at target at the end of the test, and fails the test
// when it cannot. Call it before the code under test mounts there, so that it also cleans
// up after a failure.
func UnmountAtEnd(t testing.TB, target string) {
	t.Helper()
	t.Cleanup(func() {
		// More mounts can only come from an endless loop of the test.
		const most = 1000
		for range most {
			err := unmount(target)
			switch {
			case err == nil:
				continue
			case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOENT):
				return
			}
			t.Errorf("roottest: unmount %s: %v", target, err)
			return
		}
		t.Errorf("roottest: more than %d mounts at %s", most, target)
	})
}

// UnmountBelowAtEnd unmounts everything below dir at the end of the test, also mounts
// whose path has changed because directories above them were moved. It fails the test when
// it cannot.
func UnmountBelowAtEnd(t testing.TB, dir string) {
	t.Helper()
	t.Cleanup(func() {
		mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(dir))
		if err != nil {
			t.Errorf("roottest: read the mount table: %v", err)
		}
		// Later mounts may be on top.
		for _, m := range slices.Backward(mounts) {
			if err := unmount(m.Mountpoint); err != nil {
				t.Errorf("roottest: unmount %s: %v", m.Mountpoint, err)
			}
		}
	})
}

// unmount unmounts what is on top at target. Another test that starts a program has, between fork and exec, a copy of
// each descriptor of this process, and the mount is busy until then; one that is for longer is an error.
func unmount(target string) error {
	const most = 10 * time.Second
	for deadline := time.Now().Add(most); ; time.Sleep(5 * time.Millisecond) {
		err := unix.Unmount(target, unix.UMOUNT_NOFOLLOW)
		if !errors.Is(err, unix.EBUSY) || time.Now().After(deadline) {
			return err
		}
	}
}
