package fakedriver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestLookForOpenFiles: an open file is found, and a volume that has taken every inode does not keep the driver: it opens only some
// of the files.
func TestLookForOpenFiles(t *testing.T) {
	dir := t.TempDir()
	for i := range 4 * mostLooked {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%04d", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if inUse(dir) {
		t.Error("no file is open, and one was found")
	}
	if n := opens(t, dir, func() { inUse(dir) }); n > mostLooked {
		t.Errorf("%d files were opened", n)
	}
	f, err := os.Open(filepath.Join(dir, "0007"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if !inUse(dir) {
		t.Error("the open file was not found")
	}
	if n := opens(t, dir, func() { inUse(dir) }); n > 8 {
		t.Errorf("%d files were opened to find the eighth", n)
	}
}

// opens counts how many files of a directory are opened meanwhile, by the kernel's own word.
func opens(t *testing.T, dir string, do func()) (n int) {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if _, err := unix.InotifyAddWatch(fd, dir, unix.IN_OPEN); err != nil {
		t.Fatal(err)
	}
	do()
	// An event of a file has its name, in 16 bytes here; one of the directory itself has none.
	buffer := make([]byte, 64<<10)
	for {
		got, err := unix.Read(fd, buffer)
		if errors.Is(err, unix.EAGAIN) {
			return n
		}
		if err != nil {
			t.Fatal(err)
		}
		for rest := buffer[:got]; len(rest) >= unix.SizeofInotifyEvent; {
			length := int(rest[12]) // native.Uint32 of less than 256, little-endian
			if length > 0 {
				n++
			}
			rest = rest[unix.SizeofInotifyEvent+length:]
		}
	}
}
