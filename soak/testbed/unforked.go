package testbed

import (
	"os"
	"syscall"
)

// Unforked calls f, which opens and closes files on a volume, while no process is started. Between fork and exec a new
// process has the files open, too, and would keep the volume from being unmounted.
func Unforked(f func()) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	f()
}

// ReadUnforked is [os.ReadFile], [Unforked].
func ReadUnforked(path string) (content []byte, err error) {
	Unforked(func() { content, err = os.ReadFile(path) })
	return content, err
}

// WriteUnforked is [os.WriteFile], [Unforked].
func WriteUnforked(path string, content []byte) (err error) {
	Unforked(func() { err = os.WriteFile(path, content, 0o600) })
	return err
}

// ReadDirUnforked is [os.ReadDir], [Unforked].
func ReadDirUnforked(path string) (entries []os.DirEntry, err error) {
	Unforked(func() { entries, err = os.ReadDir(path) })
	return entries, err
}
