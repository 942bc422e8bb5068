package scratch

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/node/beneath"
	"github.com/katbox/katbox/internal/testing/roottest/hostile"
)

// subvolume makes a btrfs subvolume in the directory at.
func subvolume(t *testing.T, at int, name string) {
	t.Helper()
	const request = 0x5000940e // BTRFS_IOC_SUBVOL_CREATE
	var args [4096]byte
	copy(args[8:], name)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(at), request, uintptr(unsafe.Pointer(&args))); errno != 0 {
		t.Fatalf("make subvolume %s: %v", name, errno)
	}
}

// snapshot makes a read-only snapshot of the subvolume at path in the directory dir.
func snapshot(t *testing.T, path, dir, name string) {
	t.Helper()
	const request, readOnly = 0x50009417, 1 << 1 // BTRFS_IOC_SNAP_CREATE_V2
	source, at := openPath(t, path), openPath(t, dir)
	defer unix.Close(source)
	defer unix.Close(at)
	var args [4096]byte
	binary.NativeEndian.PutUint64(args[0:], uint64(source))
	binary.NativeEndian.PutUint64(args[16:], readOnly)
	copy(args[56:], name)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(at), request, uintptr(unsafe.Pointer(&args))); errno != 0 {
		t.Fatalf("make snapshot %s: %v", name, errno)
	}
}

func openPath(t *testing.T, path string) int {
	t.Helper()
	fd, err := unix.Open(path, beneath.DirectoryFlags, 0)
	must(t, err)
	return fd
}

func makeSubvolume(t *testing.T, path string) {
	t.Helper()
	at := openPath(t, filepath.Dir(path))
	defer unix.Close(at)
	subvolume(t, at, filepath.Base(path))
}

// TestEraseSubvolumes has what a pod can make on btrfs without privileges.
func TestEraseSubvolumes(t *testing.T) {
	tests := []struct {
		name string
		fill func(t *testing.T, dir string)
	}{
		{name: "nested", fill: func(t *testing.T, dir string) {
			makeSubvolume(t, dir+"/a")
			fill(t, dir+"/a", 10, 10)
			makeSubvolume(t, dir+"/a/d3/b")
			fill(t, dir+"/a/d3/b", 10, 10)
		}},
		{name: "read-only snapshots", fill: func(t *testing.T, dir string) {
			makeSubvolume(t, dir+"/a")
			must(t, os.MkdirAll(dir+"/a/only/directories", 0o700))
			fill(t, dir+"/a/only/directories", 300, 3)
			must(t, os.WriteFile(dir+"/a/fixed", nil, 0o600))
			hostile.Fix(t, dir+"/a/fixed", hostile.Immutable)
			// In the snapshots, an empty directory takes its place.
			makeSubvolume(t, dir+"/a/only/inner")
			for i := range 3 {
				snapshot(t, dir+"/a", dir, strconv.Itoa(i))
			}
			snapshot(t, dir+"/0", dir+"/a/only", "again")
		}},
		{name: "deep inside", fill: func(t *testing.T, dir string) {
			makeSubvolume(t, dir+"/a")
			hostile.Deep(t, dir+"/a", 2000, "d")
			snapshot(t, dir+"/a", dir, "snapshot")
		}},
		{name: "deep above and inside", fill: func(t *testing.T, dir string) {
			hostile.Deep(t, dir, maxDepth-2, "d")
			bottom := filepath.Join(dir, strings.Repeat("d/", maxDepth-2))
			for _, name := range []string{"a", "b"} {
				makeSubvolume(t, bottom+"/"+name)
				hostile.Deep(t, bottom+"/"+name, 3*maxDepth, "d")
			}
			snapshot(t, bottom+"/a", bottom, "snapshot")
		}},
		{name: "a deep chain of them", fill: func(t *testing.T, dir string) {
			path := dir
			for range 3 * maxDepth {
				path += "/s"
				makeSubvolume(t, path)
				must(t, os.MkdirAll(path+"/x/y/z", 0o700))
				must(t, os.WriteFile(path+"/x/y/file", nil, 0o600))
			}
			snapshot(t, filepath.Dir(path), dir+"/s/x", "snapshot")
		}},
	}
	for _, old := range []bool{false, true} {
		t.Run(map[bool]string{false: "current calls", true: "old calls"}[old], func(t *testing.T) {
			d := openAt(t, fileSystem(t, "btrfs"))
			d.opener.NoOpenat2.Store(old)
			d.noRename2.Store(old)
			for _, tt := range tests {
				t.Run(tt.name, func(t *testing.T) {
					tt.fill(t, create(t, d, here))
					_, _, err := d.Usage(context.Background(), here, nil)
					must(t, err)
					name, _ := discard(t, d, here)
					hostile.FewFiles(t, maxDepth+20)
					erase(t, d, name)
				})
				t.Run(tt.name+", in place", func(t *testing.T) {
					tt.fill(t, create(t, d, here))
					must(t, d.EraseInPlace(context.Background(), here, nil))
					trashIsEmpty(t, d)
				})
			}
		})
	}
}
