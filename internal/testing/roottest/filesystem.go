package roottest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// LeftOut reports whether -short leaves a type of file system out: all but ext4.
func LeftOut(fstype string) bool { return testing.Short() && fstype != "ext4" }

// FileSystem mounts a new file system of the given type and size until the end
// of the test, and returns its mount point. It is a real one on a loop device, with a
// journal where the type has one; ext4 reserves no blocks for root. exfat comes by FUSE where the kernel has none. options
// are for its mkfs. Without mkfs, or in a user namespace, the test is skipped: only the real root may
// use loop devices.
func FileSystem(t testing.TB, fstype string, megabytes int, options ...string) string {
	t.Helper()
	Need(t)
	return fileSystem(t, memory(t, megabytes), "", fstype, megabytes, options)
}

// FileSystemIn is [FileSystem] with its image in a directory, and so at the speed of that disk.
func FileSystemIn(t testing.TB, dir, fstype string, megabytes int, options ...string) string {
	t.Helper()
	Need(t)
	return fileSystem(t, dir, "", fstype, megabytes, options)
}

// QuotaFileSystem is [FileSystem] with project quotas that are enforced. Ask [Quotas] before whether the kernel has them; ext4
// takes the features quota and project.
func QuotaFileSystem(t testing.TB, fstype string, megabytes int, options ...string) string {
	t.Helper()
	Need(t)
	return fileSystem(t, memory(t, megabytes), "prjquota", fstype, megabytes, options)
}

// memory returns a directory for an image.
func memory(t testing.TB, megabytes int) string {
	t.Helper()
	dir := t.TempDir()
	Mount(t, "katbox-test", dir, "tmpfs", 0, fmt.Sprintf("size=%dm", megabytes+1))
	return dir
}

// fileSystem makes a file system with its image in a directory, and mounts it with what is data for mount(2).
func fileSystem(t testing.TB, dir, data, fstype string, megabytes int, options []string) string {
	t.Helper()
	image, target := filepath.Join(dir, "image"), filepath.Join(dir, "mnt")
	if err := errors.Join(os.Mkdir(target, 0o700), os.WriteFile(image, nil, 0o600), os.Truncate(image, int64(megabytes)<<20)); err != nil {
		t.Fatal(err)
	}
	mkfs := map[string][]string{
		"ext4":  {"mkfs.ext4", "-q", "-m", "0", "-O", "has_journal", image},
		"xfs":   {"mkfs.xfs", "-q", image},
		"btrfs": {"mkfs.btrfs", "-q", image},
		"vfat":  {"mkfs.vfat", image},
		"exfat": {"mkfs.exfat", image},
	}[fstype]
	if mkfs == nil {
		t.Fatalf("roottest: file system type %q is not known", fstype)
	}
	Programs(t, mkfs[0], "losetup")
	if out, err := run(append(mkfs, options...)...); err != nil {
		t.Fatalf("roottest: %s: %v: %s", mkfs[0], err, out)
	}
	loop, err := run("losetup", "--find", "--show", image)
	if err != nil {
		Lacks(t, "loop devices", err, loop)
	}
	t.Cleanup(func() {
		if out, err := run("losetup", "--detach", loop); err != nil {
			t.Errorf("losetup --detach %s: %v: %s", loop, err, out)
		}
	})
	UnmountAtEnd(t, target)
	err = unix.Mount(loop, target, fstype, 0, data)
	switch {
	case err == nil:
	case errors.Is(err, unix.EPERM):
		Lacks(t, "loop devices", err)
	case errors.Is(err, unix.ENODEV) && fstype == "exfat":
		Programs(t, "mount.exfat-fuse")
		if out, err := run("mount.exfat-fuse", loop, target); err != nil {
			t.Fatalf("roottest: mount.exfat-fuse %s %s: %v: %s", loop, target, err, out)
		}
	case errors.Is(err, unix.ENODEV):
		Lacks(t, fstype, err)
	case errors.Is(err, unix.EINVAL) && slices.Contains(options, "casefold"):
		Lacks(t, "casefold", err)
	default:
		t.Fatalf("roottest: mount %s on %s: %v", strconv.Quote(loop), target, err)
	}
	return target
}

// Folding returns a directory of a new file system that takes names for one that differ in case. The file systems are ext4,
// vfat and exfat.
func Folding(t testing.TB, fstype string, megabytes int) string {
	t.Helper()
	if fstype != "ext4" {
		return FileSystem(t, fstype, megabytes)
	}
	Programs(t, "chattr")
	dir := filepath.Join(FileSystem(t, fstype, megabytes, "-O", "casefold"), "folding")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if out, err := run("chattr", "+F", dir); err != nil {
		t.Fatalf("roottest: chattr +F: %v: %s", err, out)
	}
	return dir
}

// ShutDown does to the file system of a directory what the kernel does when its disk fails. XFS then refuses to say
// anything about its files.
func ShutDown(t testing.TB, dir string) { shutDown(t, dir, 2) } // without its journal

func shutDown(t testing.TB, dir string, how int) {
	t.Helper()
	open, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	const goingDown = 0x8004587d // XFS_IOC_GOINGDOWN, which ext4 has too
	if err := unix.IoctlSetPointerInt(int(open.Fd()), goingDown, how); err != nil {
		t.Fatal(err)
	}
}

// RefuseWrites makes the file system of a directory take no more writes, as it does itself after an error of its disk: an ext4
// becomes read-only, an XFS shuts down with its journal written.
func RefuseWrites(t testing.TB, fstype, dir string) {
	t.Helper()
	if fstype == "ext4" {
		if err := unix.Mount("", dir, "", unix.MS_REMOUNT, "errors=remount-ro,abort"); err != nil {
			t.Fatal(err)
		}
		return
	}
	shutDown(t, dir, 1)
}

// MountAnew takes a file system of these tests away and mounts it again, as a person does once its disk is well. Nothing of it is
// in use.
func MountAnew(t testing.TB, dir string) {
	t.Helper()
	infos, err := mountinfo.GetMounts(mountinfo.SingleEntryFilter(dir))
	if err != nil || len(infos) != 1 {
		t.Fatalf("roottest: what is mounted at %s: %v, %v", dir, infos, err)
	}
	data := ""
	if strings.Contains(infos[0].VFSOptions, "prjquota") {
		data = "prjquota"
	}
	if err := unix.Unmount(dir, unix.UMOUNT_NOFOLLOW); err != nil {
		t.Fatalf("roottest: unmount %s: %v", dir, err)
	}
	if err := unix.Mount(infos[0].Source, dir, infos[0].FSType, 0, data); err != nil {
		t.Fatalf("roottest: mount %s on %s anew: %v", infos[0].Source, dir, err)
	}
}

func run(command ...string) (string, error) {
	out, err := exec.Command(command[0], command[1:]...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}
