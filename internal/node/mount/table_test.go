package mount

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	mountutils "k8s.io/mount-utils"

	"github.com/katbox/katbox/internal/testing/roottest"
)

func TestBindings(t *testing.T) {
	roottest.Need(t)
	base := t.TempDir()
	data, pods := filepath.Join(base, "data dir"), filepath.Join(base, "pods")
	for _, dir := range []string{data, data + "/p", data + "/p/v1", data + "/p/v2", data + "/p/v3", pods, pods + "/a",
		pods + "/b", pods + "/c d", pods + "/tmp"} {
		mkdir(t, dir)
	}
	m := New()
	for _, b := range []struct {
		source, target string
		options        []string
	}{
		{"/p/v1", "/a", []string{"bind"}},
		{"/p/v2", "/b", []string{"bind", "ro"}},
		{"/p/v1", "/b", []string{"bind"}},
		{"/p/v3", "/c d", []string{"bind"}},
	} {
		roottest.UnmountAtEnd(t, pods+b.target)
		if err := m.Mount(data+b.source, pods+b.target, "", b.options); err != nil {
			t.Fatal(err)
		}
	}
	roottest.Tmpfs(t, pods+"/tmp", 0)
	if err := os.Remove(data + "/p/v3"); err != nil {
		t.Fatal(err)
	}
	want := []Binding{
		{Source: "p/v1", Target: pods + "/a"},
		{Source: "p/v2", Target: pods + "/b", ReadOnly: true},
		{Source: "p/v1", Target: pods + "/b"},
		{Source: "p/v3", Target: pods + "/c d"},
	}
	check := func(t *testing.T, dir, below string) {
		t.Helper()
		got, err := bindings(t, dir, below)
		if err != nil {
			t.Fatal(err)
		}
		want := slices.Clone(want)
		for i := range want {
			want[i].Target = below + strings.TrimPrefix(want[i].Target, pods)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	}
	t.Run("plain", func(t *testing.T) { check(t, data, pods) })
	t.Run("through symbolic links", func(t *testing.T) {
		links := t.TempDir()
		for name, dir := range map[string]string{"data": data, "base": base} {
			if err := os.Symlink(dir, filepath.Join(links, name)); err != nil {
				t.Fatal(err)
			}
		}
		check(t, links+"/data", links+"/base/pods")
	})
	t.Run("with a mount of its own", func(t *testing.T) {
		roottest.UnmountAtEnd(t, data)
		if _, err := EnsureOwn(data); err != nil {
			t.Fatal(err)
		}
		check(t, data, pods)
	})
	t.Run("references", func(t *testing.T) {
		refs, err := m.GetMountRefs(data + "/p/v1")
		if err != nil || !slices.Equal(refs, []string{pods + "/a", pods + "/b"}) {
			t.Errorf("of the source: %q, %v", refs, err)
		}
		refs, err = m.GetMountRefs(pods + "/a")
		if err != nil || !slices.Equal(refs, []string{pods + "/b"}) {
			t.Errorf("of a target: %q, %v", refs, err)
		}
		if refs, err := m.GetMountRefs(base + "/none"); err != nil || len(refs) != 0 {
			t.Errorf("of nothing: %q, %v", refs, err)
		}
	})
	t.Run("list", func(t *testing.T) {
		points, err := m.List()
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(points, func(p mountutils.MountPoint) bool {
			return p.Path == pods+"/tmp" && p.Type == "tmpfs" && p.Device == "katbox-test" && slices.Contains(p.Opts, "rw")
		}) {
			t.Errorf("the tmpfs is not in %+v", points)
		}
	})
	t.Run("with something mounted over it", func(t *testing.T) {
		open := openDir(t, data)
		roottest.Tmpfs(t, data, 0)
		if got, err := Bindings(open, pods); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v, %v\nwant %+v", got, err, want)
		}
	})
	t.Run("on a mount that is in the mount table no more", func(t *testing.T) {
		roottest.UnmountAtEnd(t, data)
		if _, err := EnsureOwn(data); err != nil {
			t.Fatal(err)
		}
		open := openDir(t, data)
		if err := unix.Unmount(data, unix.MNT_DETACH); err != nil {
			t.Fatal(err)
		}
		if got, err := Bindings(open, pods); err == nil {
			t.Errorf("%+v, though where it is cannot be told", got)
		}
	})
	if got, err := bindings(t, data, base+"/none"); err != nil || len(got) != len(want) {
		t.Errorf("without the pods directory: %v, %v, want them all", got, err)
	}
}

// bindings are those of the directory at a path.
func bindings(t *testing.T, dir, pods string) ([]Binding, error) {
	t.Helper()
	return Bindings(openDir(t, dir), pods)
}

func openDir(t testing.TB, path string) *os.File {
	t.Helper()
	dir, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	return dir
}

func TestEnsureOwn(t *testing.T) {
	roottest.Need(t)
	outer := t.TempDir()
	// Where the surroundings are shared, so would be a plain bind.
	roottest.Tmpfs(t, outer, 0)
	if err := unix.Mount("", outer, "", unix.MS_SHARED, ""); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(outer, "dir")
	mkdir(t, dir)
	link := filepath.Join(outer, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	roottest.UnmountAtEnd(t, dir)
	for i, path := range []string{link, dir, dir} {
		if i == 1 {
			// As a crash in the middle leaves it.
			if err := unix.Mount("", dir, "", unix.MS_SHARED, ""); err != nil {
				t.Fatal(err)
			}
		}
		made, err := EnsureOwn(path)
		if err != nil || made != (i == 0) {
			t.Fatalf("call %d: %v, %v", i, made, err)
		}
	}
	lines, err := readTable()
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, info := range lines {
		if info.Mountpoint == dir {
			found++
			if info.Optional != "" {
				t.Errorf("propagation is %q", info.Optional)
			}
		}
	}
	if found != 1 {
		t.Errorf("%d mounts at %s", found, dir)
	}
	if _, err := EnsureOwn(filepath.Join(outer, "none")); err == nil {
		t.Error("no error for a missing directory")
	}
}

func TestIsBoundOnItself(t *testing.T) {
	for name, tt := range map[string]struct {
		line string
		want bool
	}{
		"bound on itself":             {"30 20 8:1 /mnt/disk/data /data rw - ext4 /dev/sda1 rw", true},
		"bound from elsewhere":        {"30 20 8:1 /mnt/disk/other /data rw - ext4 /dev/sda1 rw", false},
		"a disk of its own":           {"30 20 8:2 / /data rw - ext4 /dev/sda2 rw", false},
		"no mount of its own, its ID": {"30 20 8:1 /mnt/disk / rw - ext4 /dev/sda1 rw", false},
	} {
		lines := table(t, "20 1 8:1 /mnt/disk / rw - ext4 /dev/sda1 rw", tt.line)
		if got, err := isBoundOnItself(lines, "/data", 30); err != nil || got != tt.want {
			t.Errorf("%s: %t, %v, want %t", name, got, err, tt.want)
		}
	}
}

func TestReleaseOwn(t *testing.T) {
	roottest.Need(t)
	dir := t.TempDir()
	roottest.UnmountAtEnd(t, dir)
	for _, mounted := range []bool{false, true} {
		if mounted {
			if made, err := EnsureOwn(dir); err != nil || !made {
				t.Fatal(made, err)
			}
		}
		if err := ReleaseOwn(dir); err != nil {
			t.Fatal(err)
		}
		if isMountPoint(t, New(), dir) {
			t.Error("still mounted")
		}
	}
	roottest.Tmpfs(t, dir, 0)
	if err := ReleaseOwn(dir); err != nil || !isMountPoint(t, New(), dir) {
		t.Errorf("a foreign mount was taken away (%v)", err)
	}
}
