package scratch

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/roottest"
	"github.com/katbox/katbox/internal/testing/roottest/hostile"
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
		if roottest.LeftOut(fstype) {
			continue
		}
		t.Run(fstype, func(t *testing.T) {
			roottest.Need(t)
			root := fileSystem(t, fstype)
			// As an administrator does who limits the working directory.
			hostile.SetProject(t, root, 10)
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

func TestHostileContents(t *testing.T) {
	eachFileSystem(t, func(t *testing.T, d *Dir) {
		for _, tt := range hostile.Trees {
			t.Run(tt.Name, func(t *testing.T) {
				dir := create(t, d, here)
				// Whatever fill did before it skipped the rest is to go, too.
				t.Run("fill", func(t *testing.T) { tt.Fill(t, dir) })
				inside := map[uint64]bool{}
				must(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, _ error) error {
					var st unix.Stat_t
					if unix.Lstat(path, &st) == nil {
						inside[st.Ino] = true
					}
					return nil
				}))
				want := int64(len(inside))
				if tt.Name == "10,000 deep" {
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
		for _, tt := range hostile.Trees {
			t.Run(tt.Name, func(t *testing.T) {
				dir := create(t, d, here)
				t.Run("fill", func(t *testing.T) { tt.Fill(t, dir) })
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
				hostile.Fix(t, outside, hostile.Immutable)
				hostile.Fix(t, place, hostile.Immutable)
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
