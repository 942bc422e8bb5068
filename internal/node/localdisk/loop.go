package localdisk

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach"
)

const (
	loopControl = "/dev/loop-control"
	blockDir    = "/sys/block"
	// loopBlock is the size of the blocks of all loop devices, whatever the disk has: the file system of a volume
	// fits on any disk then, and the kernel can read and write past the page cache on any.
	loopBlock = 4096
	// imageName is the file in a volume's directory.
	imageName = "image"
)

// loop is an open loop device that has a file. While it is open the device keeps its file.
type loop struct {
	*os.File
	name   string // such as loop3
	number uint64
	kernel.LoopFile
}

func (l *loop) path() string { return "/dev/" + l.name }

// loopNames returns the names of the loop devices whose file's path ends in suffix, as the kernel shows it. That path
// may be one of a mount namespace that is gone.
func loopNames(suffix string) ([]string, error) {
	devices, err := kernel.Names(blockDir)
	if err != nil {
		return nil, fmt.Errorf("list the loop devices: %w", err)
	}
	var names []string
	for _, name := range devices {
		if !strings.HasPrefix(name, "loop") {
			continue
		}
		content, err := readBacking(name)
		switch {
		case hasNoFile(err):
			continue // or it lost it just now
		case err != nil:
			return nil, fmt.Errorf("which file %s has: %w", name, err)
		}
		if strings.HasSuffix(backingFile(content), suffix) {
			names = append(names, name)
		}
	}
	return names, nil
}

// readBacking reads the path of a loop device's file, as sysfs shows it.
func readBacking(name string) ([]byte, error) {
	return kernel.ReadFile(unix.AT_FDCWD, filepath.Join(blockDir, name, "loop/backing_file"), 0, os.Getpagesize())
}

// backingFile reads what sysfs shows of the path of a loop device's file.
func backingFile(content []byte) string {
	return strings.TrimSuffix(string(bytes.TrimSuffix(content, []byte("\n"))), " (deleted)")
}

// openNode opens the node of a loop device. It makes a missing one: on a node that is a container, as kind's, /dev is no
// devtmpfs, and has only the nodes of the container's start. The error is [fs.ErrNotExist] if there is no such device.
func openNode(name string, flags int) (*os.File, error) {
	content, err := kernel.ReadFile(unix.AT_FDCWD, filepath.Join(blockDir, name, "dev"), 0, os.Getpagesize())
	if err != nil {
		return nil, err
	}
	var major, minor uint32
	if _, err := fmt.Sscanf(string(content), "%d:%d", &major, &minor); err != nil {
		return nil, fmt.Errorf("the number of %s is %q: %w", name, content, err)
	}
	path, number := "/dev/"+name, unix.Mkdev(major, minor)
	st, err := kernel.Lstatat(unix.AT_FDCWD, path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = kernel.MakeBlockDevice(path, number); err != nil && !errors.Is(err, fs.ErrExist) {
			// It is not the pool's disk that may be full.
			return nil, errors.New("make the node " + path + ", which takes the node's /dev, writable, and a privileged container: " + err.Error())
		}
		st, err = kernel.Lstatat(unix.AT_FDCWD, path)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("look at %s: %w", path, err)
	case st.Mode&unix.S_IFMT != unix.S_IFBLK || st.Rdev != number:
		return nil, fmt.Errorf("%s is not the node of the loop device %d:%d; remove it", path, major, minor)
	}
	return kernel.Open(path, flags)
}

// openLoop opens a loop device. The error is [volume.ErrNotFound] if it has no file any more.
func openLoop(name string, flags int) (*loop, error) {
	file, err := openNode(name, flags)
	switch {
	case hasNoFile(err):
		return nil, fmt.Errorf("%w: %w", volume.ErrNotFound, err)
	case err != nil:
		return nil, err
	}
	l := &loop{File: file, name: name}
	st, err := kernel.Fstat(int(file.Fd()))
	if err == nil {
		l.number = st.Rdev
		l.LoopFile, err = kernel.LoopStatus(int(file.Fd()))
	}
	if errors.Is(err, unix.ENXIO) {
		err = fmt.Errorf("%w: %s has no file any more", volume.ErrNotFound, name)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return l, nil
}

// loopsOf returns the loop devices that have an open file, open as well. suffix is how its path ends.
func loopsOf(file *os.File, suffix string) (loops []*loop, err error) {
	st, err := kernel.Fstat(int(file.Fd()))
	if err != nil {
		return nil, err
	}
	names, err := loopNames(suffix)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		l, err := openLoop(name, os.O_RDONLY)
		switch {
		case errors.Is(err, volume.ErrNotFound):
			continue
		case err != nil:
			closeLoops(loops)
			return nil, err
		case l.Inode != st.Ino || l.Device != st.Dev:
			l.Close()
			continue
		}
		loops = append(loops, l)
	}
	return loops, nil
}

func closeLoops(loops []*loop) {
	for _, l := range loops {
		l.Close()
	}
}

// attachLoop makes a loop device of an open file. With flags that have [kernel.LoopAutoclear] the device goes with
// its last handle.
func attachLoop(file *os.File, flags uint32) (*loop, error) {
	control, err := kernel.Open(loopControl, os.O_RDWR)
	if err != nil {
		return nil, fmt.Errorf("the node has no loop devices (modprobe loop): %w", err)
	}
	defer control.Close()
	// Another process may take the device first.
	const tries = 100
	for range tries {
		l, err := attachOne(control, file, flags)
		if !errors.Is(err, unix.EBUSY) {
			return l, err
		}
	}
	return nil, fmt.Errorf("%w: other processes take all loop devices", volume.ErrBusy)
}

// attachOne makes one loop device of a file. The error is EBUSY if another process took the device.
func attachOne(control, file *os.File, flags uint32) (*loop, error) {
	number, release, err := reserveLoop()
	if err != nil {
		return nil, err
	}
	defer release()
	if err := kernel.LoopAdd(int(control.Fd()), number); err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, fmt.Errorf("make loop device %d: %w", number, err)
	}
	name := fmt.Sprintf("loop%d", number)
	device, err := openNode(name, os.O_RDWR)
	if err != nil {
		return nil, err
	}
	defer device.Close()
	err = kernel.LoopConfigure(int(device.Fd()), int(file.Fd()), flags|kernel.LoopDirectIO, loopBlock)
	if err != nil {
		return nil, fmt.Errorf("make a loop device of %s, which takes Linux 5.8: %w", file.Name(), err)
	}
	l, err := openLoop(name, os.O_RDONLY)
	if err == nil {
		// What the device discarded would have to be found again when it is written to.
		err = refuseDiscards(name)
	}
	if err != nil {
		// No other process has seen it.
		err = errors.Join(err, kernel.LoopClear(int(device.Fd())))
		if l != nil {
			l.Close()
		}
		return nil, err
	}
	return l, nil
}

// firstLoop is the lowest number of a loop device that is taken. Other programs take the lowest one that is free; one
// that tries to take a device which has a file just now makes it look mounted for a moment.
const firstLoop = 1000

// reserved are the numbers of loop devices that goroutines of this process are about to give a file.
var reserved struct {
	sync.Mutex
	numbers map[int]bool
}

// reserveLoop returns the number of a loop device without a file that no other goroutine gets until release is
// called. A device may have lost its file (losetup -D) while a pod has its node: with that number the pod would read
// and write the next volume. So a number whose node is bound anywhere is not taken.
func reserveLoop() (number int, release func(), err error) {
	table, err := attach.Table()
	if err != nil {
		return 0, nil, err
	}
	bound := map[string]bool{}
	for _, m := range table {
		if name, ok := nodeOf(m); ok {
			bound[name] = true
		}
	}
	reserved.Lock()
	defer reserved.Unlock()
	if reserved.numbers == nil {
		reserved.numbers = map[int]bool{}
	}
	for number = firstLoop; ; number++ {
		name := fmt.Sprintf("loop%d", number)
		if reserved.numbers[number] || bound[name] {
			continue
		}
		// sysfs is in memory.
		if _, err := readBacking(name); err == nil {
			continue
		}
		reserved.numbers[number] = true
		return number, func() {
			reserved.Lock()
			defer reserved.Unlock()
			delete(reserved.numbers, number)
		}, nil
	}
}

func refuseDiscards(name string) error {
	path := filepath.Join(blockDir, name, "queue/discard_max_bytes")
	file, err := kernel.Open(path, os.O_WRONLY)
	if err == nil {
		err = errors.Join(kernel.WriteAt(file, []byte("0"), 0), file.Close())
	}
	return wrap(err, "make %s keep the blocks of its file", name)
}

// mountsOf returns the mounts of a loop device's file system, and those of its node.
func mountsOf(table []attach.Mount, name string, number uint64) (found []attach.Mount) {
	for _, m := range table {
		if node, ok := nodeOf(m); m.Device == number || ok && node == name {
			found = append(found, m)
		}
	}
	return found
}

// nodeOf returns the name of the loop device whose node a mount shows, also after the node was removed: a device that
// gets its number later is behind it.
func nodeOf(m attach.Mount) (name string, ok bool) {
	name = filepath.Base(strings.TrimSuffix(m.Root, removedMark))
	return name, (m.FSType == "devtmpfs" || m.FSType == "tmpfs") && strings.HasPrefix(name, "loop")
}

// removedMark is what the mount table adds to the path of what was removed.
const removedMark = "//deleted"

// Lost reports whether a mount shows the node of a loop device of a volume that has lost its file, as by losetup -D on
// the node. Nothing tells whose it was, and nothing can be read through it: no device gets the number while the mount
// is there. It looks at sysfs alone.
func Lost(m attach.Mount) bool {
	name, ok := nodeOf(m)
	if !ok {
		return false
	}
	number, err := strconv.Atoi(strings.TrimPrefix(name, "loop"))
	if err != nil || number < firstLoop {
		return false
	}
	_, err = readBacking(name)
	return hasNoFile(err)
}

// hasNoFile reports whether sysfs has no file of a loop device because there is none.
func hasNoFile(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENXIO) || errors.Is(err, unix.ENODEV)
}
