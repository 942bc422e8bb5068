//go:build unix

package unpack

import "golang.org/x/sys/unix"

// fatal are the errors of a file system or of this process after which no other entry can be written either.
var fatal = []error{
	unix.ENOSPC, unix.EDQUOT, unix.EROFS, unix.EIO, unix.ENODEV, unix.ENXIO, unix.ESTALE, unix.ENOTCONN, unix.ETIMEDOUT,
	unix.EHOSTDOWN, unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.EBADF,
}
