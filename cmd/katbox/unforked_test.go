package main

import (
	"os"
	"syscall"
)

// unforked calls f, which opens and closes files on a volume, while no process is started.
// Between fork and exec a new process has the files open, too, and would keep the volume
// from being unmounted.
func unforked(f func()) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	f()
}

func readUnforked(path string) (content []byte, err error) {
	unforked(func() { content, err = os.ReadFile(path) })
	return content, err
}

func writeUnforked(path string, content []byte) (err error) {
	unforked(func() { err = os.WriteFile(path, content, 0o600) })
	return err
}

func readDirUnforked(path string) (entries []os.DirEntry, err error) {
	unforked(func() { entries, err = os.ReadDir(path) })
	return entries, err
}
