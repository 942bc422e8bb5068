package unpack

import "golang.org/x/sys/windows"

// fatal are the errors of a file system or of this process after which no other entry can be written either.
var fatal = []error{
	windows.ERROR_DISK_FULL, windows.ERROR_HANDLE_DISK_FULL, windows.ERROR_DISK_QUOTA_EXCEEDED, windows.ERROR_WRITE_PROTECT,
	windows.ERROR_NOT_READY, windows.ERROR_IO_DEVICE, windows.ERROR_NO_SUCH_DEVICE, windows.ERROR_DEV_NOT_EXIST,
	windows.ERROR_NETNAME_DELETED, windows.ERROR_UNEXP_NET_ERR, windows.ERROR_TOO_MANY_OPEN_FILES, windows.ERROR_NOT_ENOUGH_MEMORY,
	windows.ERROR_INVALID_HANDLE,
}
