package scratch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/beneath"
	"github.com/katbox/katbox/internal/kernel"
	"github.com/katbox/katbox/internal/roottest"
	"github.com/katbox/katbox/internal/volume"
)

// fileSystem mounts one of the type that a subtest is named after.
func fileSystem(t *testing.T, fstype string) string {
	t.Helper()
	if fstype == "tmpfs" {
		root := t.TempDir()
		roottest.Tmpfs(t, root, 0)
		return root
	}
	return roottest.FileSystem(t, fstype, 384)
}

// eachFileSystem runs a test on all that a working directory may be on, with the system calls of
// this kernel and with old ones.
func eachFileSystem(t *testing.T, test func(t *testing.T, d *Dir)) {
	for _, fstype := range []string{"ext4", "xfs", "btrfs", "tmpfs"} {
		t.Run(fstype, func(t *testing.T) {
			roottest.Need(t)
			root := fileSystem(t, fstype)
			// As an administrator does who limits the working directory.
			setProject(t, root, 10)
			for _, old := range []bool{false, true} {
				t.Run(map[bool]string{false: "current calls", true: "old calls"}[old], func(t *testing.T) {
					d := openAt(t, filepath.Join(root, strconv.FormatBool(old)))
					d.opener.NoOpenat2.Store(old)
					d.noRename2.Store(old)
					test(t, d)
				})
			}
		})
	}
}

// fix sets flags of chattr.
func fix(t *testing.T, path string, flags uint32) {
	t.Helper()
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	must(t, err)
	defer unix.Close(fd)
	had, err := unix.IoctlGetUint32(fd, unix.FS_IOC_GETFLAGS)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, int(had|flags))
	}
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOTTY) || errors.Is(err, unix.EOPNOTSUPP) {
		t.Skipf("set flags of %s: %v", path, err)
	}
	must(t, err)
}

const immutable, appendOnly = 0x10, 0x20

// fixUnopened makes a symbolic link or a FIFO immutable, where that is possible.
func fixUnopened(t *testing.T, path string) {
	t.Helper()
	fd, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	must(t, err)
	defer unix.Close(fd)
	attr, err := kernel.FileGetattr(fd)
	if err == nil {
		attr.XFlags |= 0x8
		if err := kernel.FileSetattr(fd, attr); err != nil {
			t.Errorf("%s cannot be made immutable, though its flags can be read: %v", path, err)
		}
	}
}

// setProject gives a directory a project, which what is made in it inherits, and tells whether the
// file system has projects.
func setProject(t *testing.T, path string, project uint32) bool {
	t.Helper()
	fd, err := unix.Open(path, beneath.DirectoryFlags, 0)
	must(t, err)
	defer unix.Close(fd)
	return kernel.SetXAttr(fd, kernel.XAttr{XFlags: projectInherit, Project: project}) == nil
}

// hostile is what a pod may leave.
var hostile = []struct {
	name string
	fill func(t *testing.T, dir string)
}{
	{name: "special files", fill: func(t *testing.T, dir string) {
		must(t, unix.Mkfifo(dir+"/fifo", 0))
		must(t, unix.Mknod(dir+"/socket", unix.S_IFSOCK, 0))
		for link, to := range map[string]string{
			"loop": "loop", "dangling": "nowhere", "root": "/", "trash": "../../" + trashName, "here": ".", "up": "..",
		} {
			must(t, os.Symlink(to, filepath.Join(dir, link)))
		}
	}},
	{name: "names", fill: func(t *testing.T, dir string) {
		for _, name := range []string{
			strings.Repeat("n", 255), strings.Repeat("\xff", 254), "new\nline", "\xff\xfe", "-rf *", "...", ". ", " ", ".. ", "\x7f\x1b[2J", "\\",
		} {
			must(t, os.WriteFile(filepath.Join(dir, name), nil, 0))
			must(t, os.MkdirAll(filepath.Join(dir, "below", name), 0o700))
			must(t, os.WriteFile(filepath.Join(dir, "below", name, name), nil, 0))
		}
	}},
	{name: "hard links", fill: func(t *testing.T, dir string) {
		must(t, os.MkdirAll(dir+"/a/b", 0o700))
		must(t, os.MkdirAll(dir+"/c", 0o700))
		must(t, os.WriteFile(dir+"/a/file", []byte("data"), 0o600))
		for _, link := range []string{"/a/b/one", "/c/two", "/three"} {
			must(t, os.Link(dir+"/a/file", dir+link))
		}
	}},
	{name: "modes", fill: func(t *testing.T, dir string) {
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
	{name: "attributes", fill: func(t *testing.T, dir string) {
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
	{name: "sparse", fill: func(t *testing.T, dir string) {
		must(t, os.WriteFile(dir+"/file", []byte("data"), 0o600))
		if os.Truncate(dir+"/file", math.MaxInt64) != nil {
			must(t, os.Truncate(dir+"/file", 1<<41))
		}
	}},
	{name: "fixed", fill: func(t *testing.T, dir string) {
		for i, flags := range []uint32{immutable, appendOnly, immutable | appendOnly} {
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
				fix(t, sub+path, flags)
			}
		}
		fix(t, dir, immutable)
		fix(t, filepath.Dir(dir), appendOnly)
	}},
	{name: "deep and fixed", fill: func(t *testing.T, dir string) {
		makeDeep(t, dir, 3*maxDepth, "d")
		for depth := 3 * maxDepth; depth > 0; depth -= maxDepth / 4 {
			fix(t, filepath.Join(dir, strings.Repeat("d/", depth)), immutable)
			fix(t, filepath.Join(dir, strings.Repeat("d/", depth-1)), appendOnly)
		}
	}},
	{name: "deep, of several projects", fill: func(t *testing.T, dir string) {
		makeDeep(t, dir, 3*maxDepth, "d")
		for depth := 3 * maxDepth; depth > 0; depth-- {
			setProject(t, filepath.Join(dir, strings.Repeat("d/", depth)), uint32(depth%7))
		}
	}},
	{name: "of another project", fill: func(t *testing.T, dir string) {
		must(t, os.WriteFile(dir+"/file", nil, 0o600))
		setProject(t, dir, 20)
	}},
	{name: "10,000 deep", fill: func(t *testing.T, dir string) { makeDeep(t, dir, 10_000, "d") }},
	{name: "open, leased and deleted", fill: func(t *testing.T, dir string) {
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

func TestHostileContents(t *testing.T) {
	eachFileSystem(t, func(t *testing.T, d *Dir) {
		for _, tt := range hostile {
			t.Run(tt.name, func(t *testing.T) {
				dir := create(t, d, here)
				// Whatever fill did before it skipped the rest is to go, too.
				t.Run("fill", func(t *testing.T) { tt.fill(t, dir) })
				inside := map[uint64]bool{}
				must(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, _ error) error {
					var st unix.Stat_t
					if unix.Lstat(path, &st) == nil {
						inside[st.Ino] = true
					}
					return nil
				}))
				want := int64(len(inside))
				if tt.name == "10,000 deep" {
					// Most paths are too long.
					want = 2*10_000 + 1
				}
				bytes, inodes, err := d.Usage(context.Background(), here, nil)
				if err != nil || bytes < 0 || bytes > 300<<20 || inodes != want {
					t.Errorf("usage: %d bytes, %d inodes of %d, %v", bytes, inodes, want, err)
				}
				found := 0
				must(t, d.Walk(context.Background(), func(volume.Place) error { found++; return nil }))
				if found != 1 {
					t.Errorf("Walk found %d", found)
				}
				name, _ := discard(t, d, here)
				erase(t, d, name)
				if exists(filepath.Dir(dir)) {
					t.Error("the pod's directory is still there")
				}
			})
		}
	})
}

// TestEraseInPlaceOfHostileContents is the same without the trash.
func TestEraseInPlaceOfHostileContents(t *testing.T) {
	eachFileSystem(t, func(t *testing.T, d *Dir) {
		for _, tt := range hostile {
			t.Run(tt.name, func(t *testing.T) {
				dir := create(t, d, here)
				t.Run("fill", func(t *testing.T) { tt.fill(t, dir) })
				must(t, d.EraseInPlace(context.Background(), here, nil))
				must(t, d.EraseInPlace(context.Background(), here, nil))
				trashIsEmpty(t, d)
				if exists(filepath.Dir(dir)) {
					t.Error("the pod's directory is still there")
				}
			})
		}
	})
}

// TestEraseLeavesMountsOnFixed: the flags of what is mounted are not touched, and those of what is
// below cannot be reached.
func TestEraseLeavesMountsOnFixed(t *testing.T) {
	roottest.Need(t)
	for _, what := range []string{"file", "directory"} {
		t.Run(what, func(t *testing.T) {
			eachKernel(t, func(t *testing.T, d *Dir) {
				place := filepath.Join(create(t, d, here), "mnt")
				outside := filepath.Join(d.root, "..", "outside")
				for _, path := range []string{place, outside} {
					if what == "file" {
						must(t, os.WriteFile(path, nil, 0o600))
					} else {
						must(t, os.Mkdir(path, 0o700))
					}
				}
				t.Cleanup(func() { clearFlags(t, outside) })
				fix(t, outside, immutable)
				fix(t, place, immutable)
				roottest.UnmountBelowAtEnd(t, d.root)
				name, path := discard(t, d, here)
				// If the test ends early, its directory is to go.
				t.Cleanup(func() { _ = d.Erase(context.Background(), name, nil) })
				must(t, unix.Mount(outside, path+"/mnt", "", unix.MS_BIND, ""))
				if err := d.Erase(context.Background(), name, nil); !errors.Is(err, ErrMountInside) {
					t.Errorf("Erase: %v", err)
				}
				if err := os.Remove(outside); !errors.Is(err, unix.EPERM) {
					t.Errorf("what was mounted has lost its flag: %v", err)
				}
				must(t, unix.Unmount(path+"/mnt", 0))
				erase(t, d, name)
			})
		})
	}
}

// clearFlags undoes fix.
func clearFlags(t *testing.T, path string) {
	t.Helper()
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	must(t, err)
	defer unix.Close(fd)
	clearFixed(fd)
}
