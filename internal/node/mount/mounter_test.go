package mount

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/testing/roottest"
)

// eachKernel runs a test as on this kernel and as on an old one.
func eachKernel(t *testing.T, test func(t *testing.T, m *Mounter)) {
	t.Run("current calls", func(t *testing.T) { test(t, New()) })
	t.Run("old calls", func(t *testing.T) { test(t, oldKernel()) })
}

func oldKernel() *Mounter {
	m := New()
	m.oldMountCalls.Store(true)
	m.noMountRoot.Store(true)
	return m
}

// dirs makes a source directory with a file and a target directory, with the target's mount to be
// gone at the end of the test.
func dirs(t *testing.T) (source, target string) {
	t.Helper()
	roottest.Need(t)
	base := t.TempDir()
	source, target = filepath.Join(base, "source"), filepath.Join(base, "target")
	mkdir(t, source)
	mkdir(t, target)
	if err := os.WriteFile(filepath.Join(source, "file"), []byte("data"), 0o600); err != nil {
		t.Fatal(err)
	}
	roottest.UnmountAtEnd(t, target)
	return source, target
}

func mkdir(t *testing.T, dir string) {
	t.Helper()
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
}

func isMountPoint(t *testing.T, m *Mounter, path string) bool {
	t.Helper()
	mounted, err := m.IsMountPoint(path)
	if err != nil {
		t.Fatal(err)
	}
	return mounted
}

func flagsOf(t *testing.T, path string) uint64 {
	t.Helper()
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		t.Fatal(err)
	}
	return attributesOf(uint64(st.Flags))
}

func TestMountReadOnly(t *testing.T) {
	eachKernel(t, func(t *testing.T, m *Mounter) {
		source, target := dirs(t)
		before := flagsOf(t, source)
		if err := m.Mount(source, target, "", []string{"bind", "ro"}); err != nil {
			t.Fatal(err)
		}
		if data, err := os.ReadFile(filepath.Join(target, "file")); err != nil || string(data) != "data" {
			t.Errorf("read %q, %v", data, err)
		}
		if err := os.WriteFile(filepath.Join(target, "new"), nil, 0o600); !errors.Is(err, unix.EROFS) {
			t.Errorf("write to the read-only mount: %v", err)
		}
		if err := os.WriteFile(filepath.Join(source, "new"), nil, 0o600); err != nil {
			t.Errorf("write to the source: %v", err)
		}
		for path, want := range map[string]bool{source: false, target: true} {
			if ro, err := m.ReadOnly(path); err != nil || ro != want {
				t.Errorf("ReadOnly(%s) is %v, %v", path, ro, err)
			}
		}
		if got := flagsOf(t, target); got != before|unix.MOUNT_ATTR_RDONLY {
			t.Errorf("flags %#x, those of the source were %#x", got, before)
		}
		if err := m.Unmount(target); err != nil {
			t.Error(err)
		}
		if isMountPoint(t, m, target) {
			t.Error("still mounted")
		}
	})
}

func TestMountInheritsAndAddsFlags(t *testing.T) {
	eachKernel(t, func(t *testing.T, m *Mounter) {
		source, target := dirs(t)
		roottest.Tmpfs(t, source, unix.MS_NOSUID|unix.MS_NODEV|unix.MS_STRICTATIME|unix.MS_NODIRATIME)
		if err := m.Mount(source, target, "", []string{"bind", "noexec", "ro"}); err != nil {
			t.Fatal(err)
		}
		want := uint64(unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_STRICTATIME |
			unix.MOUNT_ATTR_NODIRATIME | unix.MOUNT_ATTR_NOEXEC | unix.MOUNT_ATTR_RDONLY)
		if got := flagsOf(t, target); got != want {
			t.Errorf("flags %#x, want %#x", got, want)
		}
	})
}

func TestMountRefuses(t *testing.T) {
	eachKernel(t, func(t *testing.T, m *Mounter) {
		source, target := dirs(t)
		base := filepath.Dir(source)
		link := filepath.Join(base, "link")
		if err := os.Symlink(source, link); err != nil {
			t.Fatal(err)
		}
		tests := []struct {
			name, source, target string
			options              []string
			want                 error
			says                 string
		}{
			{name: "no bind", source: source, target: target, options: []string{"ro"}, says: `"bind" is missing`},
			{name: "unknown option", source: source, target: target, options: []string{"bind", "sync"}, says: `"sync"`},
			{name: "missing source", source: base + "/none", target: target, options: []string{"bind"}, want: os.ErrNotExist},
			{name: "missing target", source: source, target: base + "/none", options: []string{"bind"}, want: os.ErrNotExist},
			{name: "source is a link", source: link, target: target, options: []string{"bind"}, want: unix.ENOTDIR},
			{name: "source is a link, with slash", source: link + "/", target: target, options: []string{"bind"}, want: unix.ENOTDIR},
			{name: "target is a link", source: source, target: link, options: []string{"bind"}, want: unix.ENOTDIR},
			{name: "source is a file", source: source + "/file", target: target, options: []string{"bind"}, want: unix.ENOTDIR},
			{name: "target is a file", source: source, target: source + "/file", options: []string{"bind"}, want: unix.ENOTDIR},
			{name: "relative source", source: "source", target: target, options: []string{"bind"}, says: "not absolute"},
			{name: "empty target", source: source, target: "", options: []string{"bind"}, says: "not absolute"},
		}
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				err := m.Mount(tt.source, tt.target, "", tt.options)
				if err == nil {
					t.Fatal("mounted")
				}
				if tt.want != nil && !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.says) {
					t.Errorf("error %v", err)
				}
				if isMountPoint(t, m, target) || isMountPoint(t, m, source) {
					t.Error("something is mounted")
				}
			})
		}
		if err := m.MountSensitive(source, target, "", []string{"bind"}, []string{"secret"}); err == nil ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("sensitive option: %v", err)
		}
	})
}

func TestUnmount(t *testing.T) {
	m := New()
	source, target := dirs(t)
	link := filepath.Join(filepath.Dir(source), "link")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	if err := m.Mount(source, target, "", []string{"bind"}); err != nil {
		t.Fatal(err)
	}
	held, err := os.Create(filepath.Join(target, "held"))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Unmount(target); !errors.Is(err, unix.EBUSY) {
		t.Errorf("unmount while a file is open: %v", err)
	}
	if _, err := held.WriteString("kept"); err != nil {
		t.Error(err)
	}
	held.Close()
	if data, err := os.ReadFile(filepath.Join(target, "held")); err != nil || string(data) != "kept" {
		t.Errorf("after the refused unmount: %q, %v", data, err)
	}
	for _, path := range []string{link, link + "/"} {
		if err := m.Unmount(path); !errors.Is(err, unix.EINVAL) {
			t.Errorf("unmount %s: %v", path, err)
		}
	}
	if err := m.Unmount(target); err != nil {
		t.Error(err)
	}
	if err := m.Unmount(target); !errors.Is(err, unix.EINVAL) {
		t.Errorf("unmount of what is not mounted: %v", err)
	}
	if err := m.Unmount(target + "/none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("unmount of what does not exist: %v", err)
	}
}

// TestFlagsReachPropagatedCopies is why Mount sets the flags first: a kubelet sees what a daemon in
// a container mounts as a propagated copy only.
func TestFlagsReachPropagatedCopies(t *testing.T) {
	source, here := dirs(t)
	there := filepath.Join(filepath.Dir(source), "there")
	mkdir(t, there)
	roottest.Tmpfs(t, here, 0)
	if err := unix.Mount("", here, "", unix.MS_SHARED, ""); err != nil {
		t.Fatal(err)
	}
	roottest.Bind(t, here, there)
	mkdir(t, filepath.Join(here, "target"))
	roottest.UnmountAtEnd(t, filepath.Join(here, "target"))

	m := New()
	if err := m.Mount(source, filepath.Join(here, "target"), "", []string{"bind", "ro"}); err != nil {
		t.Fatal(err)
	}
	if err := unix.MountSetattr(unix.AT_FDCWD, here, 0, &unix.MountAttr{}); unsupported(err) {
		roottest.Lacks(t, "Linux 5.12", err)
	}
	for _, side := range []string{here, there} {
		target := filepath.Join(side, "target")
		if !isMountPoint(t, m, target) {
			t.Errorf("nothing is mounted at %s", target)
		}
		if ro, err := New().ReadOnly(target); err != nil || !ro {
			t.Errorf("ReadOnly(%s) is %v, %v", target, ro, err)
		}
	}
	if err := m.Unmount(filepath.Join(here, "target")); err != nil {
		t.Error(err)
	}
	if isMountPoint(t, m, filepath.Join(there, "target")) {
		t.Error("the copy is still mounted")
	}
}
