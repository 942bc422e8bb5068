package content

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// overfill is the directory in a volume that a pod writes into until it is refused.
const overfill = "soak-overfill"

// Room is an amount of bytes and of inodes.
type Room struct{ Bytes, Inodes int64 }

// Overfill is a pod that writes into a volume until it is refused: first bytes, then, when those
// are removed again, empty files. It returns how much was taken of each, and takes no more than most.
// What it wrote is removed in the end. The error says what went wrong beside ENOSPC and EDQUOT.
//
// A pod has no CAP_SYS_RESOURCE, with which ext4 would not limit it, so this has none either.
func Overfill(dir string, most Room) (taken Room, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return taken, fmt.Errorf("open the volume's directory %s: %w", dir, err)
	}
	defer root.Close()
	err = withoutResource(func() error {
		var err error
		if taken.Bytes, err = overfillBytes(root, most.Bytes); err == nil {
			taken.Inodes, err = overfillInodes(root, most.Inodes)
		}
		return err
	})
	if err != nil {
		err = fmt.Errorf("overfill %s: %w", dir, err)
	}
	return taken, err
}

// overfillBytes writes one file.
func overfillBytes(root *os.Root, most int64) (taken int64, err error) {
	f, err := root.OpenFile(overfill, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if outOfRoom(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close(), root.Remove(overfill)) }()
	// What cannot be told from zeros a file system might leave out.
	piece := make([]byte, pieceSize)
	for i := range piece {
		piece[i] = byte(i)
	}
	for taken < most {
		n, err := f.Write(piece[:min(int64(len(piece)), most-taken)])
		taken += int64(n)
		if outOfRoom(err) {
			break
		}
		if err != nil {
			return taken, err
		}
	}
	// What the file system finds out only now is refused as well.
	switch err := f.Sync(); {
	case outOfRoom(err):
		return 0, errors.New("a write that had succeeded was refused by fsync")
	case err != nil:
		return taken, err
	}
	return taken, nil
}

// overfillInodes makes empty files in a directory, which is one more.
func overfillInodes(root *os.Root, most int64) (taken int64, err error) {
	err = root.Mkdir(overfill, directoryMode)
	if outOfRoom(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, root.RemoveAll(overfill)) }()
	for taken = 1; taken < most; taken++ {
		f, err := root.OpenFile(overfill+"/"+strconv.FormatInt(taken, 10), os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
		if outOfRoom(err) {
			return taken, nil
		}
		if err != nil {
			return taken, err
		}
		if err := f.Close(); err != nil {
			return taken, err
		}
	}
	return taken, nil
}

// withoutResource does something on a thread that has no CAP_SYS_RESOURCE.
func withoutResource(do func() error) (err error) {
	runtime.LockOSThread()
	header := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var has [2]unix.CapUserData
	if err := unix.Capget(header, &has[0]); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("read the capabilities: %w", err)
	}
	less := has
	less[0].Effective &^= 1 << unix.CAP_SYS_RESOURCE
	if err := unix.Capset(header, &less[0]); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("do without CAP_SYS_RESOURCE: %w", err)
	}
	defer func() {
		if again := unix.Capset(header, &has[0]); again != nil {
			err = errors.Join(err, fmt.Errorf("get CAP_SYS_RESOURCE back: %w", again))
			return // the thread ends with its goroutine
		}
		runtime.UnlockOSThread()
	}()
	return do()
}
