package kernel

import (
	"golang.org/x/sys/unix"
)

// Mount is mount(2).
func Mount(source, target, fstype string, flags uintptr, data string) error {
	return do("Mount", at(target), func() error { return unix.Mount(source, target, fstype, flags, data) })
}

// Unmount takes away the topmost mount at target. It follows no symbolic link and is
// neither lazy nor forced: those end while a process may still be writing.
func Unmount(target string) error {
	return do("Unmount", at(target), func() error { return unix.Unmount(target, unix.UMOUNT_NOFOLLOW) })
}

// OpenTree returns a copy of the mount at the open directory fd. The copy is attached
// nowhere, and goes when its handle is closed.
func OpenTree(fd int) (tree int, err error) {
	err = do("OpenTree", object{dir: fd}, func() error {
		tree, err = unix.OpenTree(fd, "", unix.AT_EMPTY_PATH|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
		return err
	})
	return tree, err
}

// MountSetattr changes the mount that fd is the root of.
func MountSetattr(fd int, attr *unix.MountAttr) error {
	return do("MountSetattr", object{dir: fd}, func() error { return unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, attr) })
}

// MoveMount attaches the mount tree on the open directory onto.
func MoveMount(tree, onto int) error {
	return do("MoveMount", object{dir: onto}, func() error {
		return unix.MoveMount(tree, "", onto, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
	})
}
