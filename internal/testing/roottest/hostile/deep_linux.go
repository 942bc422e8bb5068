package hostile

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// directory are the flags that open a directory.
const directory = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

// Deep makes directories inside each other, relative to handles because the path is longer than
// any path may be, and a file in each.
func Deep(t testing.TB, dir string, depth int, name string) {
	t.Helper()
	at, err := unix.Open(dir, directory, 0)
	must(t, err)
	for range depth {
		must(t, unix.Mkdirat(at, name, 0o700))
		file, err := unix.Openat(at, "file", unix.O_CREAT|unix.O_WRONLY, 0o600)
		must(t, err)
		unix.Close(file)
		below, err := unix.Openat(at, name, directory, 0)
		must(t, err)
		unix.Close(at)
		at = below
	}
	unix.Close(at)
}

// FewFiles lets the process have no more than some files open, beside those that it has.
func FewFiles(t testing.TB, some int) {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	var old unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &old))
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(len(open) + some), Max: old.Max}))
	t.Cleanup(func() { must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &old)) })
}
