package mount

import (
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/testing/roottest"
)

func TestSameFileSystem(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		one, other string
		want       bool
	}{
		"directories":         {filepath.Join(dir, "a"), filepath.Join(dir, "b"), true},
		"one does not exist":  {filepath.Join(dir, "a"), filepath.Join(dir, "missing/pods"), true},
		"another file system": {dir, "/proc/self/missing", false},
	} {
		if got, err := SameFileSystem(tt.one, tt.other); err != nil || got != tt.want {
			t.Errorf("%s: %t, %v, want %t", name, got, err, tt.want)
		}
	}
}

// TestSameFileSystemThroughMounts: a container sees its two directories by mounts of their own.
func TestSameFileSystemThroughMounts(t *testing.T) {
	for _, fstype := range []string{"ext4", "btrfs"} {
		t.Run(fstype, func(t *testing.T) {
			disk := roottest.FileSystem(t, fstype, 200)
			view := t.TempDir()
			roottest.UnmountBelowAtEnd(t, view)
			for _, name := range []string{"work", "pods"} {
				source, target := filepath.Join(disk, name), filepath.Join(view, name)
				if err := os.Mkdir(target, 0o700); err != nil {
					t.Fatal(err)
				}
				if err := makeDirectory(fstype, disk, name); err != nil {
					t.Fatal(err)
				}
				if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
					t.Fatal(err)
				}
			}
			if same, err := SameFileSystem(filepath.Join(view, "work"), filepath.Join(view, "pods")); err != nil || !same {
				t.Errorf("two directories of one disk: %t, %v", same, err)
			}
			if same, err := SameFileSystem(filepath.Join(view, "work"), view); err != nil || same {
				t.Errorf("two disks: %t, %v", same, err)
			}
		})
	}
}

// makeDirectory makes a directory, on btrfs as a subvolume.
func makeDirectory(fstype, parent, name string) error {
	if fstype != "btrfs" {
		return os.Mkdir(filepath.Join(parent, name), 0o700)
	}
	at, err := os.Open(parent)
	if err != nil {
		return err
	}
	defer at.Close()
	const subvolumeCreate = 0x5000940e // BTRFS_IOC_SUBVOL_CREATE
	var args [4096]byte                // struct btrfs_ioctl_vol_args
	copy(args[8:], name)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, at.Fd(), subvolumeCreate, uintptr(unsafe.Pointer(&args)))
	if errno != 0 {
		return errno
	}
	return nil
}
