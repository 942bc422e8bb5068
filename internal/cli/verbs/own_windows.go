package verbs

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// openOwn opens a file to read and write, for this process alone: while another has it the error is
// errBusy. With the flag os.O_CREATE it makes one that does not exist. It follows no symbolic link. The
// mode is not used: what the directory grants applies.
func openOwn(name string, flag int, _ fs.FileMode) (*os.File, error) {
	path, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	how := uint32(windows.OPEN_EXISTING)
	if flag&os.O_CREATE != 0 {
		how = windows.OPEN_ALWAYS
	}
	// Others may read, rename and remove it, but not open it to write.
	handle, err := windows.CreateFile(path, windows.GENERIC_READ|windows.GENERIC_WRITE, windows.FILE_SHARE_READ|windows.FILE_SHARE_DELETE,
		nil, how, windows.FILE_ATTRIBUTE_NORMAL|windows.FILE_FLAG_OPEN_REPARSE_POINT, 0)
	switch {
	case errors.Is(err, windows.ERROR_SHARING_VIOLATION):
		return nil, errBusy
	case err != nil:
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(handle), name), nil
}
