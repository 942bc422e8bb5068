package host

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/soak/internal/launch"
)

// makeImage makes a sparse file with a new file system in it, which a command makes.
func makeImage(image string, command []string, kind DiskKind, size int64) error {
	tool, err := lookTool(command[0])
	if err != nil {
		return fmt.Errorf("%w: make a disk: %w; install the tools of %s", ErrUnavailable, err, kind)
	}
	file, err := os.OpenFile(image, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("make the disk's image: %w", err)
	}
	if err := errors.Join(file.Truncate(size), file.Close()); err != nil {
		return fmt.Errorf("make the disk's image with %d bytes: %w", size, err)
	}
	if out, err := exec.Command(tool, command[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: make %s on %d bytes: %s: %w: %s; a larger disk may do",
			launch.ErrUsage, kind, size, command[0], err, strings.TrimSpace(string(out)))
	}
	return nil
}

// mkfs is the command that makes a file system.
func mkfs(image string, kind DiskKind, inodes int64, quotas bool) []string {
	switch kind {
	case XFS:
		return []string{"mkfs.xfs", "-q", "-f", image}
	case Btrfs:
		return []string{"mkfs.btrfs", "-q", "-f", image}
	}
	features, extended := "has_journal", "lazy_itable_init=0,lazy_journal_init=0"
	if quotas {
		features, extended = features+",quota,project", extended+",quotatype=prjquota"
	}
	command := []string{
		"mkfs.ext4", "-q", "-F",
		// No blocks are set aside for root: full means full, for everybody.
		"-m", "0",
		"-O", features,
		// As on a real disk; a small one would get smaller blocks.
		"-b", "4096",
		// Otherwise the kernel would go on writing by itself once it is mounted.
		"-E", extended,
	}
	if inodes > 0 {
		command = append(command, "-N", strconv.FormatInt(inodes, 10))
	}
	return append(command, image)
}

// lookTool finds a program of the administrator, which is often not in the PATH
// of others.
func lookTool(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil {
		return path, nil
	}
	for _, dir := range []string{"/usr/sbin", "/sbin"} {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", err
}

// mountImage mounts the file system in the image. The loop device in between
// frees itself with the mount, in whatever way that goes: it is told so in the
// same call that takes it, and until it is mounted, this process's own file
// descriptor is all that holds it.
func mountImage(image, target string, kind DiskKind, quotas bool) error {
	file, err := os.OpenFile(image, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("open the disk's image: %w", err)
	}
	defer file.Close()
	device, err := attach(file)
	if err != nil {
		return fmt.Errorf("%w: take a loop device: %w; run it as root of the machine, or take a tmpfs", ErrUnavailable, err)
	}
	defer device.Close()
	options := ""
	if quotas {
		options = "prjquota"
	}
	err = unix.Mount(device.Name(), target, string(kind), 0, options)
	switch {
	case quotas && errors.Is(err, unix.EINVAL):
		return fmt.Errorf("%w: mount %s, a disk with %s and project quotas, which the kernel may not have, on %s: %w",
			ErrUnavailable, device.Name(), kind, target, err)
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES), errors.Is(err, unix.ENODEV):
		return fmt.Errorf("%w: mount %s, a disk with %s, on %s: %w", ErrUnavailable, device.Name(), kind, target, err)
	case err != nil:
		return fmt.Errorf("mount %s, a disk with %s, on %s: %w", device.Name(), kind, target, err)
	}
	return nil
}

// attach puts the file behind a free loop device. See LOOP_CONFIGURE in loop(4);
// it needs Linux 5.8.
func attach(file *os.File) (*os.File, error) {
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer control.Close()
	// Another process may take the device between the question and the taking.
	const tries = 100
	for try := 1; ; try++ {
		number, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, os.NewSyscallError("LOOP_CTL_GET_FREE", err)
		}
		device, err := os.OpenFile("/dev/loop"+strconv.Itoa(number), os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		err = unix.IoctlLoopConfigure(int(device.Fd()), &unix.LoopConfig{
			Fd:   uint32(file.Fd()),
			Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR},
		})
		if err == nil {
			return device, nil
		}
		err = fmt.Errorf("%s: %w", device.Name(), os.NewSyscallError("LOOP_CONFIGURE", err))
		device.Close()
		if try == tries || !errors.Is(err, unix.EBUSY) && !errors.Is(err, unix.EAGAIN) {
			return nil, err
		}
	}
}
