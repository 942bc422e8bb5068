//go:build unix

package unpack

import (
	"io/fs"
	"syscall"
	"testing"
)

// systems are this system, and one with an os.Root, which macOS and Windows unpack with.
var systems = map[string]system{"host": host, "os.Root": {open: openRooted}}

// links is how many names a file has, allocated how much of the disk it takes in bytes.
func links(info fs.FileInfo) uint64    { return uint64(info.Sys().(*syscall.Stat_t).Nlink) }
func allocated(info fs.FileInfo) int64 { return info.Sys().(*syscall.Stat_t).Blocks * 512 }

// fifo makes a FIFO, where there are any.
func fifo(t testing.TB, path string) {
	t.Helper()
	must(t, syscall.Mkfifo(path, 0o644))
}
