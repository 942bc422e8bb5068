package mount

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/testing/roottest"
)

// lockedDirVariable tells a test that againInUserNamespace started it, inside a user namespace, and
// where.
const lockedDirVariable = "KATBOX_TEST_LOCKED_DIR"

// TestLockedFlags mounts in a user namespace below a mount that was made outside of it: there the
// kernel refuses with EPERM to drop any flag.
func TestLockedFlags(t *testing.T) {
	if dir := os.Getenv(lockedDirVariable); dir != "" {
		eachKernel(t, func(t *testing.T, m *Mounter) { mountBelowLocked(t, m, dir) })
		return
	}
	roottest.Need(t)
	dir := t.TempDir()
	roottest.Tmpfs(t, dir, unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOATIME|unix.MS_NODIRATIME)
	mkdir(t, filepath.Join(dir, "source"))
	mkdir(t, filepath.Join(dir, "target"))

	againInUserNamespace(t, dir)
}

// againInUserNamespace runs the test once more, inside a user namespace.
func againInUserNamespace(t *testing.T, dir string) {
	t.Helper()
	again := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	again.Env = append(os.Environ(), lockedDirVariable+"="+dir, roottest.Variable+"=1")
	again.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	output, err := again.CombinedOutput()
	if err != nil {
		t.Fatalf("in a user namespace: %v\n%s", err, output)
	}
}

func mountBelowLocked(t *testing.T, m *Mounter, dir string) {
	roottest.Need(t)
	source, target := filepath.Join(dir, "source"), filepath.Join(dir, "target")
	roottest.UnmountAtEnd(t, target)
	inherited := flagsOf(t, source)
	if err := m.Mount(source, target, "", []string{"bind", "ro", "noexec"}); err != nil {
		t.Fatal(err)
	}
	if got, want := flagsOf(t, target), inherited|unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOEXEC; got != want {
		t.Errorf("flags %#x, want %#x", got, want)
	}
	if err := m.Unmount(target); err != nil {
		t.Fatal(err)
	}
	if err := m.Mount(source, target, "", []string{"bind", "relatime"}); err == nil {
		t.Error("changed a locked flag")
	}
	if isMountPoint(t, m, target) {
		t.Error("the failed mount was not undone")
	}
}
