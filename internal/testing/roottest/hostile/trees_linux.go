package hostile

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Tree is something that a pod may leave.
type Tree struct {
	Name string
	// Fill makes it in an empty directory, which should be on a file system of its own: flags may
	// keep it from being removed. It skips the rest where the file system lacks something.
	Fill func(t testing.TB, dir string)
}

// deep is more levels than Katbox holds open.
const deep = 3 * 64

// Trees is what a pod may leave.
var Trees = []Tree{
	{Name: "special files", Fill: func(t testing.TB, dir string) {
		must(t, unix.Mkfifo(dir+"/fifo", 0))
		must(t, unix.Mknod(dir+"/socket", unix.S_IFSOCK, 0))
		for link, to := range map[string]string{
			"loop": "loop", "dangling": "nowhere", "root": "/", "trash": "../../.trash", "here": ".", "up": "..",
		} {
			must(t, os.Symlink(to, filepath.Join(dir, link)))
		}
	}},
	{Name: "names", Fill: func(t testing.TB, dir string) {
		for _, name := range Names {
			must(t, os.WriteFile(filepath.Join(dir, name), nil, 0))
			must(t, os.MkdirAll(filepath.Join(dir, "below", name), 0o700))
			must(t, os.WriteFile(filepath.Join(dir, "below", name, name), nil, 0))
		}
	}},
	{Name: "hard links", Fill: func(t testing.TB, dir string) {
		must(t, os.MkdirAll(dir+"/a/b", 0o700))
		must(t, os.MkdirAll(dir+"/c", 0o700))
		must(t, os.WriteFile(dir+"/a/file", []byte("data"), 0o600))
		for _, link := range []string{"/a/b/one", "/c/two", "/three"} {
			must(t, os.Link(dir+"/a/file", dir+link))
		}
	}},
	{Name: "modes", Fill: func(t testing.TB, dir string) {
		for i, mode := range []uint32{0, 0o7777, unix.S_ISVTX, unix.S_ISUID | unix.S_ISGID} {
			sub := fmt.Sprintf("%s/%d", dir, i)
			must(t, os.MkdirAll(sub+"/below", 0o700))
			must(t, os.WriteFile(sub+"/file", nil, 0o600))
			// A user namespace may not have these.
			for _, path := range []string{"/file", ""} {
				if err := unix.Chown(sub+path, 12345, 54321); !errors.Is(err, unix.EINVAL) {
					must(t, err)
				}
			}
			must(t, unix.Chmod(sub+"/file", mode))
			must(t, unix.Chmod(sub, mode))
		}
	}},
	{Name: "attributes", Fill: func(t testing.TB, dir string) {
		must(t, os.MkdirAll(dir+"/sub/below", 0o700))
		must(t, os.WriteFile(dir+"/sub/file", nil, 0o600))
		// Version 2; the owner, the group and others may do nothing.
		acl := []byte{2, 0, 0, 0, 1, 0, 0, 0, 255, 255, 255, 255, 4, 0, 0, 0, 255, 255, 255, 255, 32, 0, 0, 0, 255, 255, 255, 255}
		for name, value := range map[string][]byte{
			"user.a": []byte(strings.Repeat("x", 100)), "trusted.a": []byte("x"), "security.a": []byte("x"),
			"system.posix_acl_access": acl, "system.posix_acl_default": acl,
		} {
			for _, path := range []string{"/sub/file", "/sub/below", "/sub"} {
				err := unix.Setxattr(dir+path, name, value, 0)
				// Not every file system and every root may have each of them.
				if err != nil && !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EACCES) {
					t.Errorf("%s of %s: %v", name, path, err)
				}
			}
		}
	}},
	{Name: "sparse", Fill: func(t testing.TB, dir string) {
		must(t, os.WriteFile(dir+"/file", []byte("data"), 0o600))
		if os.Truncate(dir+"/file", math.MaxInt64) != nil {
			must(t, os.Truncate(dir+"/file", 1<<41))
		}
	}},
	{Name: "fixed", Fill: func(t testing.TB, dir string) {
		for i, flags := range []uint32{Immutable, AppendOnly, Immutable | AppendOnly} {
			sub := fmt.Sprintf("%s/%d", dir, i)
			must(t, os.MkdirAll(sub+"/a/b/c", 0o700))
			for _, path := range []string{"/a/b/c/file", "/a/b/file", "/file", "/a/link"} {
				must(t, os.WriteFile(sub+path, nil, 0o600))
			}
			must(t, os.Link(sub+"/file", sub+"/a/b/c/link"))
			must(t, unix.Mkfifo(sub+"/a/fifo", 0o600))
			must(t, os.Symlink("/", sub+"/a/symlink"))
			fixUnopened(t, sub+"/a/fifo")
			fixUnopened(t, sub+"/a/symlink")
			for _, path := range []string{"/a/b/c/file", "/a/b/c", "/a/b", "/a", "/file", ""} {
				Fix(t, sub+path, flags)
			}
		}
		Fix(t, dir, Immutable)
		Fix(t, filepath.Dir(dir), AppendOnly)
	}},
	{Name: "deep and fixed", Fill: func(t testing.TB, dir string) {
		Deep(t, dir, deep, "d")
		for depth := deep; depth > 0; depth -= 16 {
			Fix(t, filepath.Join(dir, strings.Repeat("d/", depth)), Immutable)
			Fix(t, filepath.Join(dir, strings.Repeat("d/", depth-1)), AppendOnly)
		}
	}},
	{Name: "deep, of several projects", Fill: func(t testing.TB, dir string) {
		Deep(t, dir, deep, "d")
		for depth := deep; depth > 0; depth-- {
			SetProject(t, filepath.Join(dir, strings.Repeat("d/", depth)), uint32(depth%7))
		}
	}},
	{Name: "of another project", Fill: func(t testing.TB, dir string) {
		must(t, os.WriteFile(dir+"/file", nil, 0o600))
		SetProject(t, dir, 20)
	}},
	{Name: "10,000 deep", Fill: func(t testing.TB, dir string) { Deep(t, dir, 10_000, "d") }},
	{Name: "open, leased and deleted", Fill: func(t testing.TB, dir string) {
		for i := range 4 {
			path := fmt.Sprintf("%s/%d", dir, i)
			f, err := os.Create(path)
			must(t, err)
			t.Cleanup(func() { f.Close() })
			_, err = f.WriteString("data")
			must(t, err)
			switch i {
			case 0:
				must(t, os.Remove(path))
			case 1:
				_, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK)
				must(t, err)
			case 2:
				must(t, unix.Flock(int(f.Fd()), unix.LOCK_EX))
			}
		}
	}},
}
