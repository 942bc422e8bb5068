package mount

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/testing/roottest"
)

func TestIsMountPoint(t *testing.T) {
	roottest.Need(t)
	base := t.TempDir()
	path := func(name string) string { return filepath.Join(base, name) }
	for _, name := range []string{"source", "source/inner", "plain", "bound", "self", "tmpfs", "twice"} {
		mkdir(t, path(name))
	}
	for _, name := range []string{"file", "boundfile"} {
		if err := os.WriteFile(path(name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("bound", path("link")); err != nil {
		t.Fatal(err)
	}
	roottest.Bind(t, path("source"), path("bound"))
	roottest.Bind(t, path("self"), path("self"))
	roottest.Tmpfs(t, path("tmpfs"), 0)
	roottest.Bind(t, path("source"), path("twice"))
	roottest.Bind(t, path("plain"), path("twice"))
	roottest.Bind(t, path("file"), path("boundfile"))

	tests := []struct {
		name string
		want bool
		err  error
	}{
		{name: "plain", want: false},
		{name: "source", want: false},
		{name: "bound", want: true},
		{name: "bound/", want: true},
		{name: "bound/inner", want: false},
		{name: "self", want: true},
		{name: "tmpfs", want: true},
		{name: "twice", want: true},
		{name: "file", want: false},
		{name: "boundfile", want: true},
		{name: "link", want: false},
		{name: "link/", want: false},
		{name: "link/inner", want: false},
		{name: "none", err: fs.ErrNotExist},
		{name: "none/below", err: fs.ErrNotExist},
		{name: "file/below", err: unix.ENOTDIR},
	}
	eachKernel(t, func(t *testing.T, m *Mounter) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				got, err := m.IsMountPoint(base + "/" + tt.name)
				if got != tt.want || !errors.Is(err, tt.err) {
					t.Errorf("IsMountPoint: %v, %v; want %v, %v", got, err, tt.want, tt.err)
				}
				not, err := m.IsLikelyNotMountPoint(base + "/" + tt.name)
				if not == got || !errors.Is(err, tt.err) {
					t.Errorf("IsLikelyNotMountPoint: %v, %v", not, err)
				}
			})
		}
		if !isMountPoint(t, m, "/") {
			t.Error("/ is no mount point")
		}
	})
}

func TestIDFromBothSources(t *testing.T) {
	dir, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	proc, err := os.Open("/proc/self")
	if err != nil {
		t.Fatal(err)
	}
	defer proc.Close()
	ids := map[uint64]bool{}
	for _, f := range []*os.File{dir, proc} {
		id, err := ID(int(f.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		old, err := procID(int(f.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		if id != old {
			t.Errorf("%s: ID is %d, by way of /proc %d", f.Name(), id, old)
		}
		ids[id] = true
	}
	if len(ids) != 2 {
		t.Error("two mounts have the same ID")
	}
	if _, err := ID(-1); err == nil {
		t.Error("no error for a bad descriptor")
	}
}

func TestLookCached(t *testing.T) {
	roottest.Need(t)
	base := t.TempDir()
	path := func(name string) string { return filepath.Join(base, name) }
	for _, name := range []string{"plain", "tmpfs", "twice", "removed"} {
		mkdir(t, path(name))
	}
	for _, name := range []string{"file", "boundfile"} {
		if err := os.WriteFile(path(name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("tmpfs", path("link")); err != nil {
		t.Fatal(err)
	}
	roottest.Tmpfs(t, path("tmpfs"), 0)
	mkdir(t, path("tmpfs/inner"))
	roottest.Bind(t, path("plain"), path("twice"))
	roottest.Bind(t, path("tmpfs/inner"), path("twice"))
	roottest.Bind(t, path("file"), path("boundfile"))
	roottest.Bind(t, path("tmpfs/inner"), path("removed"))
	var on, in unix.Stat_t
	if err := errors.Join(unix.Stat(base, &on), unix.Stat(path("tmpfs"), &in), os.Remove(path("tmpfs/inner"))); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]Point{
		"plain":      {Mode: unix.S_IFDIR, Device: on.Dev},
		"plain/":     {Mode: unix.S_IFDIR, Device: on.Dev},
		"file":       {Mode: unix.S_IFREG, Device: on.Dev},
		"boundfile":  {Mode: unix.S_IFREG, Device: on.Dev, Mounted: true},
		"link":       {Mode: unix.S_IFLNK, Device: on.Dev},
		"tmpfs":      {Mode: unix.S_IFDIR, Device: in.Dev, Mounted: true},
		"twice":      {Mode: unix.S_IFDIR, Device: in.Dev, Mounted: true, Removed: true},
		"removed":    {Mode: unix.S_IFDIR, Device: in.Dev, Mounted: true, Removed: true},
		"/dev/null":  {Mode: unix.S_IFCHR, Node: unix.Mkdev(1, 3)},
		"/proc/self": {Mode: unix.S_IFLNK},
	} {
		at := name
		if !filepath.IsAbs(name) {
			at = base + "/" + name
		}
		fd, err := unix.Open(filepath.Clean(at), unix.O_PATH|unix.O_NOFOLLOW, 0)
		if err != nil {
			t.Fatal(err)
		}
		byPath, pathErr := LookCached(at)
		byHandle, handleErr := LookOpen(fd)
		before, beforeErr := lookBefore(unix.AT_FDCWD, filepath.Clean(at), lookFlags)
		unix.Close(fd)
		if err := errors.Join(pathErr, handleErr, beforeErr); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if byPath != byHandle || byPath != before && !want.Removed {
			t.Errorf("%s: %+v by its path, %+v by a handle, %+v without statx", name, byPath, byHandle, before)
		}
		if byPath.Mode &= unix.S_IFMT; filepath.IsAbs(name) {
			byPath.Device = 0
		}
		if byPath != want {
			t.Errorf("%s: %+v, want %+v", name, byPath, want)
		}
	}
	if p, err := LookCached(path("none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing: %+v, %v", p, err)
	}
}
