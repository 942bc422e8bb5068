package mount

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
)

// FileSystem mounts a whole file system on the directory target, an absolute path and no symbolic link, with
// mount(2). data holds the file system's own options. An error wraps the kernel's; then nothing is mounted.
//
// It waits for the server or the device of the file system.
func FileSystem(source, target, fstype string, flags Flags, data string) error {
	onto, err := openDirectory(target)
	if err != nil {
		return err
	}
	defer unix.Close(onto)
	return kernel.Mount(source, handlePath(onto), fstype, uintptr(flags), data)
}

// Flags are the flags of mount(2).
type Flags uintptr

// ReadOnly mounts a file system that refuses writes.
const ReadOnly Flags = unix.MS_RDONLY

// generic are the options of mount(8) that no file system knows, beside those of [KnownFlag], and their flags.
// Some have none: they are how mounts are anyway, or are for programs.
var generic = map[string]Flags{
	"defaults": 0, "_netdev": 0, "suid": 0, "dev": 0, "async": 0, "auto": 0, "noauto": 0, "nofail": 0, "nouser": 0,
	"atime": 0, "diratime": 0, "norelatime": 0, "nolazytime": 0,
	"sync": unix.MS_SYNCHRONOUS, "dirsync": unix.MS_DIRSYNC, "lazytime": unix.MS_LAZYTIME,
}

// SplitOptions returns the flags of mount(2) that options ask for, and the options that are the file system's own.
// Of options that contradict each other the last wins, as with mount(8).
func SplitOptions(options []string) (flags Flags, own []string) {
	var attributes uint64
	named := false
	for _, option := range options {
		if change, ok := knownFlags[option]; ok {
			attributes, named = change.apply(attributes), true
		} else if flag, ok := generic[option]; ok {
			flags |= flag
		} else {
			own = append(own, option)
		}
	}
	if named {
		flags |= Flags(remountFlags(attributes))
	}
	return flags, own
}

// BindFile binds a file, such as a device's node, on the file target, as [Mounter.Mount] does with a directory.
func (m *Mounter) BindFile(source, target string, options []string) error {
	return m.bind(source, target, options, ofFiles)
}

// isFile reports whether a type, as of stat(2), is that of an ordinary file or of a block device's node.
func isFile(mode uint32) bool {
	return mode&unix.S_IFMT == unix.S_IFREG || mode&unix.S_IFMT == unix.S_IFBLK
}

// openFile returns a handle that stands for the file at path, or for what is mounted there.
func openFile(path string) (int, error) {
	fd, err := open(path, 0)
	if err != nil {
		return -1, fmt.Errorf("open %s: %w", shown(path), err)
	}
	st, err := kernel.Fstat(fd)
	if err == nil && !isFile(st.Mode) {
		err = fmt.Errorf("%s is neither a file nor a block device", shown(path))
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}
