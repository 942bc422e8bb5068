package mount

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/testing/roottest"
)

// eachExecutable runs a test with mounters that clear noexec, as on this kernel and as on an old
// one. locked returns how often they said that the kernel refuses that.
func eachExecutable(t *testing.T, test func(t *testing.T, m *Mounter, locked func() int)) {
	eachKernel(t, func(t *testing.T, like *Mounter) {
		var refusals []error
		m := NewExecutable(func(err error) { refusals = append(refusals, err) })
		m.oldMountCalls.Store(like.oldMountCalls.Load())
		m.noMountRoot.Store(like.noMountRoot.Load())
		test(t, m, func() int {
			for _, err := range refusals {
				if !errors.Is(err, unix.EPERM) {
					t.Errorf("refused because of %v", err)
				}
			}
			return len(refusals)
		})
	})
}

// noexecDirs makes a source with a script on a file system that is mounted noexec.
func noexecDirs(t *testing.T, flags uintptr) (source, target string) {
	t.Helper()
	source, target = dirs(t)
	roottest.Tmpfs(t, source, flags)
	writeScript(t, source)
	return source, target
}

func writeScript(t *testing.T, dir string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "script"), []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
}

// executes reports whether the script in dir can be executed.
func executes(t *testing.T, dir string) bool {
	t.Helper()
	err := exec.Command(filepath.Join(dir, "script")).Run()
	if err != nil && !errors.Is(err, unix.EACCES) {
		t.Fatal(err)
	}
	noexec, asked := Noexec(dir)
	if asked != nil || noexec != (err != nil) {
		t.Errorf("Noexec(%s) is %t, %v, and a script fails with %v", dir, noexec, asked, err)
	}
	return err == nil
}

func TestNoexecIsCleared(t *testing.T) {
	const others = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOATIME
	for name, tt := range map[string]struct {
		of      uintptr
		options []string
		want    bool
	}{
		"inherited":          {unix.MS_NOEXEC, []string{"bind"}, true},
		"with other options": {unix.MS_NOEXEC, []string{"bind", "ro", "nodiratime"}, true},
		"asked for":          {unix.MS_NOEXEC, []string{"bind", "noexec"}, false},
		"asked to be kept":   {unix.MS_NOEXEC, []string{"bind", "ro", "noexec"}, false},
		"asked to be gone":   {unix.MS_NOEXEC, []string{"bind", "exec"}, true},
		"not there":          {0, []string{"bind"}, true},
		"not there, and on":  {0, []string{"bind", "noexec"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			eachExecutable(t, func(t *testing.T, m *Mounter, locked func() int) {
				source, target := noexecDirs(t, others|tt.of)
				before := flagsOf(t, source)
				if err := m.Mount(source, target, "", tt.options); err != nil {
					t.Fatal(err)
				}
				if got := executes(t, target); got != tt.want {
					t.Errorf("a script in the mount executes: %t", got)
				}
				asked, _, err := parseOptions(tt.options)
				if err != nil {
					t.Fatal(err)
				}
				want := asked.apply(before) &^ unix.MOUNT_ATTR_NOEXEC
				if !tt.want {
					want |= unix.MOUNT_ATTR_NOEXEC
				}
				if got := flagsOf(t, target); got != want {
					t.Errorf("flags %#x, want %#x", got, want)
				}
				if got := flagsOf(t, source); got != before {
					t.Errorf("flags of the source %#x, and they were %#x", got, before)
				}
				if locked() != 0 {
					t.Error("the kernel is said to refuse it")
				}
			})
		})
	}
}

// TestNoexecIsInherited by mounters that do not clear it, unless exec is asked for.
func TestNoexecIsInherited(t *testing.T) {
	for option, want := range map[string]bool{"rw": false, "exec": true} {
		t.Run(option, func(t *testing.T) {
			eachKernel(t, func(t *testing.T, m *Mounter) {
				source, target := noexecDirs(t, unix.MS_NOEXEC)
				if err := m.Mount(source, target, "", []string{"bind", option}); err != nil {
					t.Fatal(err)
				}
				if got := executes(t, target); got != want {
					t.Errorf("a script in the mount executes: %t", got)
				}
			})
		})
	}
}

// TestLockedNoexec stays in a user namespace, and is no reason not to mount.
func TestLockedNoexec(t *testing.T) {
	if dir := os.Getenv(lockedDirVariable); dir != "" {
		eachExecutable(t, func(t *testing.T, m *Mounter, locked func() int) { mountLockedNoexec(t, m, locked, dir) })
		return
	}
	roottest.Need(t)
	dir := t.TempDir()
	roottest.Tmpfs(t, dir, unix.MS_NOSUID|unix.MS_NOEXEC)
	for _, name := range []string{"source", "target"} {
		mkdir(t, filepath.Join(dir, name))
	}
	writeScript(t, filepath.Join(dir, "source"))
	againInUserNamespace(t, dir)
}

func mountLockedNoexec(t *testing.T, m *Mounter, locked func() int, dir string) {
	roottest.Need(t)
	source, target := filepath.Join(dir, "source"), filepath.Join(dir, "target")
	roottest.UnmountAtEnd(t, target)
	inherited := flagsOf(t, source)
	for _, options := range [][]string{{"bind"}, {"bind", "ro"}, {"bind", "noexec"}} {
		if err := m.Mount(source, target, "", options); err != nil {
			t.Fatal(err)
		}
		asked, _, err := parseOptions(options)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := flagsOf(t, target), asked.apply(inherited); got != want {
			t.Errorf("%q: flags %#x, want %#x", options, got, want)
		}
		if executes(t, target) {
			t.Errorf("%q: a script in the mount executes", options)
		}
		if err := m.Unmount(target); err != nil {
			t.Fatal(err)
		}
		if isMountPoint(t, m, target) {
			t.Fatalf("%q: there was more than one mount", options)
		}
	}
	if locked() != 1 {
		t.Errorf("the kernel is said %d times to refuse it, want once", locked())
	}
	if err := m.Mount(source, target, "", []string{"bind", "exec"}); !errors.Is(err, unix.EPERM) {
		t.Errorf("what is asked for and refused is %v", err)
	}
	if isMountPoint(t, m, target) {
		t.Error("the failed mount was not undone")
	}
}
