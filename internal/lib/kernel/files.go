package kernel

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Mkdir is os.Mkdir.
func Mkdir(path string, mode os.FileMode) error {
	return do("Mkdir", at(path), func() error { return os.Mkdir(path, mode) })
}

// MkdirAll is os.MkdirAll.
func MkdirAll(path string, mode os.FileMode) error {
	return do("MkdirAll", at(path), func() error {
		err := os.MkdirAll(path, mode)
		// A directory that does not answer is taken for one that is not there, and then it is.
		if failed, ok := errors.AsType[*fs.PathError](err); ok && errors.Is(err, fs.ErrExist) {
			if _, cause := os.Stat(failed.Path); cause != nil && !errors.Is(cause, fs.ErrNotExist) {
				return cause
			}
		}
		return err
	})
}

// Mkdirat is mkdirat(2).
func Mkdirat(dir int, name string, mode uint32) error {
	return do("Mkdirat", object{dir, name}, func() error { return unix.Mkdirat(dir, name, mode) })
}

// Rmdir removes an empty directory.
func Rmdir(path string) error {
	return do("Rmdir", at(path), func() error { return unix.Rmdir(path) })
}

// Rmdirat removes an empty directory.
func Rmdirat(dir int, name string) error {
	return do("Rmdirat", object{dir, name}, func() error { return unix.Unlinkat(dir, name, unix.AT_REMOVEDIR) })
}

// Unlinkat removes a name that is no directory's.
func Unlinkat(dir int, name string) error {
	return do("Unlinkat", object{dir, name}, func() error { return unix.Unlinkat(dir, name, 0) })
}

// Remove is os.Remove.
func Remove(path string) error {
	return do("Remove", at(path), func() error { return os.Remove(path) })
}

// RemoveIn removes a name in an open directory.
func RemoveIn(dir *os.Root, name string) error {
	return do("RemoveIn", at(dir.Name()+"/"+name), func() error { return dir.Remove(name) })
}

// RenameIn renames within an open directory.
func RenameIn(dir *os.Root, from, to string) error {
	return do("RenameIn", at(dir.Name()+"/"+to), func() error { return dir.Rename(from, to) })
}

// Renameat is renameat(2).
func Renameat(fromDir int, from string, toDir int, to string) error {
	return do("Renameat", object{toDir, to}, func() error { return unix.Renameat(fromDir, from, toDir, to) })
}

// RenameNoReplace is renameat2(2) with RENAME_NOREPLACE.
func RenameNoReplace(fromDir int, from string, toDir int, to string) error {
	return do("RenameNoReplace", object{toDir, to}, func() error {
		return unix.Renameat2(fromDir, from, toDir, to, unix.RENAME_NOREPLACE)
	})
}

// Exchange is renameat2(2) with RENAME_EXCHANGE, in one directory.
func Exchange(dir int, one, other string) error {
	return do("Exchange", object{dir, other}, func() error { return unix.Renameat2(dir, one, dir, other, unix.RENAME_EXCHANGE) })
}

// Open is os.OpenFile of a file that exists. It changes nothing.
func Open(path string, flag int) (*os.File, error) {
	return os.OpenFile(path, flag&^(os.O_CREATE|os.O_TRUNC), 0)
}

// Create is os.OpenFile with O_CREATE.
func Create(path string, flag int, mode os.FileMode) (file *os.File, err error) {
	err = do("Create", at(path), func() error {
		file, err = os.OpenFile(path, flag|os.O_CREATE, mode)
		return err
	})
	return file, err
}

// CreateIn is Create in an open directory.
func CreateIn(dir *os.Root, name string, flag int, mode os.FileMode) (file *os.File, err error) {
	err = do("CreateIn", at(dir.Name()+"/"+name), func() error {
		file, err = dir.OpenFile(name, flag|os.O_CREATE, mode)
		return err
	})
	return file, err
}

// Createat is openat(2) with O_CREAT. Like [ReadFile], it goes past Go's poller.
func Createat(dir int, name string, flags int, mode uint32) (fd int, err error) {
	err = do("Createat", object{dir, name}, func() error {
		fd, err = unix.Openat(dir, name, flags|unix.O_CREAT|unix.O_CLOEXEC, mode)
		return err
	})
	return fd, err
}

// Mkfile makes an empty file with mknod(2), which looks at nothing that is mounted at the path. open(2) would, and could
// wait for a server that is away.
func Mkfile(path string, mode uint32) error {
	return do("Mkfile", at(path), func() error {
		return IgnoreEINTR(func() error { return unix.Mknod(path, unix.S_IFREG|mode, 0) })
	})
}

// Pwrite writes all of b to an open file.
func Pwrite(fd int, b []byte, offset int64) error {
	return do("Pwrite", object{dir: fd}, func() error {
		for done := 0; done < len(b); {
			n, err := unix.Pwrite(fd, b[done:], offset+int64(done))
			if err != nil {
				return err
			}
			done += n
		}
		return nil
	})
}

// Update runs one transaction of a database (bbolt's), which is durable when Update returns nil.
// Update does not repeat it: after an error the transaction may be there.
func Update[T any](db database[T], transaction func(T) error) (err error) {
	injected := do("Update", at(db.Path()), func() error { err = db.Update(transaction); return nil })
	return errors.Join(injected, err)
}

type database[T any] interface {
	Path() string
	Update(transaction func(T) error) error
}

// WriteAt writes all of b to a file.
func WriteAt(file *os.File, b []byte, offset int64) error {
	return do("WriteAt", at(file.Name()), func() error {
		_, err := file.WriteAt(b, offset)
		return err
	})
}

// Order writes a word into a file of sysfs, which the kernel obeys before Order returns. Like [ReadFile], it goes
// past Go's poller.
func Order(path, word string) error {
	return do("Order", at(path), func() error {
		fd, err := Openat(unix.AT_FDCWD, path, unix.O_WRONLY)
		if err != nil {
			return fmt.Errorf("open %s: %w", path, err)
		}
		_, err = unix.Write(fd, []byte(word))
		if err = errors.Join(err, unix.Close(fd)); err != nil {
			return fmt.Errorf("write %q to %s: %w", word, path, err)
		}
		return nil
	})
}

// Truncate gives a file a size.
func Truncate(file *os.File, size int64) error {
	return do("Truncate", at(file.Name()), func() error { return file.Truncate(size) })
}

// Fallocate is fallocate(2).
func Fallocate(fd int, mode uint32, offset, length int64) error {
	return do("Fallocate", object{dir: fd}, func() error { return unix.Fallocate(fd, mode, offset, length) })
}

// Sync makes a file or a directory durable, and what is known of it.
func Sync(file *os.File) error {
	return do("Sync", at(file.Name()), file.Sync)
}

// Fsync is fsync(2).
func Fsync(fd int) error {
	return do("Fsync", object{dir: fd}, func() error { return unix.Fsync(fd) })
}

// Fdatasync is fdatasync(2).
func Fdatasync(fd int) error {
	return do("Fdatasync", object{dir: fd}, func() error { return unix.Fdatasync(fd) })
}

// Syncfs writes what is pending on the file system that fd is on.
func Syncfs(fd int) error {
	if err := injected("Syncfs", object{dir: fd}); err != nil {
		return err
	}
	return IgnoreEINTR(func() error { return unix.Syncfs(fd) })
}

// Chmod is os.Chmod.
func Chmod(path string, mode os.FileMode) error {
	return do("Chmod", at(path), func() error { return os.Chmod(path, mode) })
}

// Fchmod is fchmod(2).
func Fchmod(fd int, mode uint32) error {
	return do("Fchmod", object{dir: fd}, func() error { return unix.Fchmod(fd, mode) })
}

// ListenUnix makes a Unix socket at path and listens on it. The socket's file has the given mode from
// its first moment on, less the umask: Linux takes it from the socket that is bound.
func ListenUnix(path string, mode os.FileMode) (listener *net.UnixListener, err error) {
	config := net.ListenConfig{Control: func(_, _ string, socket syscall.RawConn) error {
		var refused error
		if err := socket.Control(func(fd uintptr) { refused = unix.Fchmod(int(fd), uint32(mode.Perm())) }); err != nil {
			return err
		}
		return refused
	}}
	err = do("ListenUnix", at(path), func() error {
		bound, err := config.Listen(context.Background(), "unix", path)
		if err == nil {
			listener = bound.(*net.UnixListener)
		}
		return err
	})
	return listener, err
}

// Mount is mount(2).
func Mount(source, target, fstype string, flags uintptr, data string) error {
	return do("Mount", at(target), func() error { return unix.Mount(source, target, fstype, flags, data) })
}

// Unmount takes away the topmost mount at target. It follows no symbolic link and is neither lazy
// nor forced: those end while a process may still be writing.
func Unmount(target string) error {
	return do("Unmount", at(target), func() error { return unix.Unmount(target, unix.UMOUNT_NOFOLLOW) })
}

// OpenTree returns a copy of the mount at a path, from there on. It follows no symbolic link there. The copy is
// attached nowhere, and goes when its handle is closed.
func OpenTree(path string) (tree int, err error) {
	err = do("OpenTree", at(path), func() error {
		const flags = unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT
		tree, err = unix.OpenTree(unix.AT_FDCWD, path, flags)
		return err
	})
	return tree, err
}

// MountSetattr changes the mount that fd is the root of.
func MountSetattr(fd int, attr *unix.MountAttr) error {
	return do("MountSetattr", object{dir: fd}, func() error { return unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, attr) })
}

// MoveMount attaches the mount tree at the path target. It follows no symbolic link there.
func MoveMount(tree int, target string) error {
	return do("MoveMount", at(target), func() error {
		return unix.MoveMount(tree, "", unix.AT_FDCWD, target, unix.MOVE_MOUNT_F_EMPTY_PATH)
	})
}
