package files

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/testing/roottest"
)

// TestNoTrace: reading, listing and walking leave the access times of files and directories as they
// are, on a mount that notes each access.
func TestNoTrace(t *testing.T) {
	roottest.Need(t)
	eachKernel(t, func(t *testing.T, dir string, _ *Tree) {
		roottest.Tmpfs(t, dir, unix.MS_STRICTATIME)
		tree := openTree(t, dir, strings.Contains(t.Name(), "old"))
		must(t, os.MkdirAll(dir+"/a/b", 0o700))
		must(t, os.WriteFile(dir+"/a/b/file", []byte("a\nb\nc"), 0o600))
		accessed := func() (times [4]unix.Timespec) {
			for i, name := range []string{"", "/a", "/a/b", "/a/b/file"} {
				var st unix.Stat_t
				must(t, unix.Lstat(dir+name, &st))
				times[i] = st.Atim
			}
			return times
		}
		before := accessed()
		readAll(t, tree)
		f := opened(t, tree, "a/b/file")
		_, err := f.Tail(t.Context(), 1, 100)
		must(t, err)
		must(t, f.Close())
		if after := accessed(); after != before {
			t.Errorf("accessed %v, before that %v", after, before)
		}
		_, err = os.ReadFile(dir + "/a/b/file")
		must(t, err)
		_, err = os.ReadDir(dir + "/a")
		must(t, err)
		if after := accessed(); after[1] == before[1] || after[3] == before[3] {
			t.Error("this file system notes no times of access")
		}
	})
}

// TestWithoutPrivileges: files of others are read all the same, and that they were is then noted.
func TestWithoutPrivileges(t *testing.T) {
	roottest.Need(t)
	eachKernel(t, func(t *testing.T, dir string, tree *Tree) {
		must(t, os.Mkdir(dir+"/a", 0o755))
		must(t, os.WriteFile(dir+"/a/file", []byte("data"), 0o644))
		for _, path := range []string{filepath.Dir(filepath.Dir(dir)), filepath.Dir(dir), dir} {
			must(t, os.Chmod(path, 0o755))
		}
		old := tree.opener.NoOpenat2.Load()
		runtime.LockOSThread() // whose user it is
		must(t, unix.Setfsuid(65534))
		found := readAll(t, tree)
		got, err := contents(tree, path(t, "a/file"))
		must(t, unix.Setfsuid(0))
		runtime.UnlockOSThread()
		if len(found) != 2 || got != "data" || err != nil {
			t.Errorf("%v, %q, %v", found, got, err)
		}
		if tree.opener.NoOpenat2.Load() != old {
			t.Error("a refused O_NOATIME was taken for a missing openat2")
		}
	})
}

// TestDropBehind: reading a large file keeps a small part of it in the page cache.
func TestDropBehind(t *testing.T) {
	const size, batch, most = 96 << 20, 256 << 10, 16 << 20
	for _, fstype := range []string{"ext4", "xfs", "btrfs"} {
		if roottest.LeftOut(fstype) {
			continue
		}
		t.Run(fstype, func(t *testing.T) {
			dir := roottest.FileSystem(t, fstype, 384)
			must(t, os.WriteFile(dir+"/file", make([]byte, size), 0o600))
			cached := pageCache(t, dir+"/file", size)
			tree := openTree(t, dir, false)
			f := opened(t, tree, "file")
			f.DropBehind(0, size)
			must(t, f.Close())
			f = opened(t, tree, "file")
			if left := cached(); left > 0 {
				t.Fatalf("%d bytes are cached before the reading", left)
			}
			peak, buf := 0, make([]byte, batch)
			for offset := int64(0); offset < size; offset += batch {
				_, err := f.ReadAt(buf, offset)
				must(t, err)
				f.DropBehind(offset, offset+batch)
				peak = max(peak, cached())
			}
			must(t, f.Close())
			if left := cached(); peak > most || left > 0 {
				t.Errorf("%d bytes were cached at the most, %d in the end", peak, left)
			}
			f = opened(t, tree, "file")
			t.Logf("%d KiB cached at the most", peak>>10)
			// Of a reader that goes away in the middle, nothing is left either.
			_, err := f.ReadAt(buf, size/2+1)
			must(t, err)
			f.DropBehind(size/2+1, size/2+2)
			must(t, f.Close())
			if left := cached(); left > 0 {
				t.Errorf("%d bytes are cached of a part", left)
			}
			f = opened(t, tree, "file")
			_, err = io.Copy(io.Discard, io.NewSectionReader(f, 0, size))
			must(t, err)
			if left := cached(); left < size/2 {
				t.Errorf("%d bytes are cached of what was read: the test sees nothing", left)
			}
		})
	}
}

// pageCache returns a function that returns how many bytes of a file are in the page cache. The file
// is on the disk then: what is not cannot be dropped.
func pageCache(t *testing.T, path string, size int) func() int {
	t.Helper()
	file, err := os.Open(path)
	must(t, err)
	t.Cleanup(func() { file.Close() })
	must(t, file.Sync())
	mapped, err := unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	must(t, err)
	t.Cleanup(func() { must(t, unix.Munmap(mapped)) })
	page := os.Getpagesize()
	resident := make([]byte, size/page)
	return func() (bytes int) {
		_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&mapped[0])), uintptr(size), uintptr(unsafe.Pointer(&resident[0])))
		if errno != 0 {
			t.Fatal(errno)
		}
		for _, r := range resident {
			bytes += int(r&1) * page
		}
		return bytes
	}
}
