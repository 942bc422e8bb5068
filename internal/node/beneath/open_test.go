package beneath

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/testing/roottest"
)

// eachKernel runs a test as on this kernel and as on an old one, each with an empty directory.
func eachKernel(t *testing.T, test func(t *testing.T, top string, o *Opener)) {
	for name, old := range map[string]bool{"current calls": false, "old calls": true} {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			o, err := New(handle(t, top))
			must(t, err)
			o.NoOpenat2.Store(old)
			test(t, top, o)
		})
	}
}

func handle(t *testing.T, path string) int {
	t.Helper()
	fd, err := unix.Open(path, DirectoryFlags, 0)
	must(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestOpen(t *testing.T) {
	eachKernel(t, func(t *testing.T, top string, o *Opener) {
		must(t, os.MkdirAll(top+"/dir/below", 0o700))
		must(t, os.WriteFile(top+"/file", nil, 0o600))
		must(t, os.Symlink("dir", top+"/link"))
		must(t, os.Symlink("nowhere", top+"/dangling"))
		must(t, unix.Mkfifo(top+"/fifo", 0o600))
		at := handle(t, top)
		tests := []struct {
			name      string
			directory error
			look      uint32
		}{
			{name: "dir", look: unix.S_IFDIR},
			{name: "file", directory: unix.ENOTDIR, look: unix.S_IFREG},
			{name: "link", directory: unix.ENOTDIR, look: unix.S_IFLNK},
			{name: "dangling", directory: unix.ENOTDIR, look: unix.S_IFLNK},
			{name: "fifo", directory: unix.ENOTDIR, look: unix.S_IFIFO},
			{name: "missing", directory: unix.ENOENT},
		}
		for _, tt := range tests {
			for call, open := range map[string]func(int, string) (int, error){
				"Directory": o.Directory, "Unnoticed": o.Unnoticed,
			} {
				fd, err := open(at, tt.name)
				if !errors.Is(err, tt.directory) {
					t.Errorf("%s of %s: %v, want %v", call, tt.name, err, tt.directory)
				}
				if err == nil {
					unix.Close(fd)
				}
			}
			fd, err := o.Look(at, tt.name)
			var st unix.Stat_t
			if err == nil {
				must(t, unix.Fstat(fd, &st))
				unix.Close(fd)
			}
			if st.Mode&unix.S_IFMT != tt.look {
				t.Errorf("look at %s: type %o, %v, want %o", tt.name, st.Mode&unix.S_IFMT, err, tt.look)
			}
		}
	})
}

// TestOpenNoMount: what is mounted is not entered, and not even asked for its type.
func TestOpenNoMount(t *testing.T) {
	roottest.Need(t)
	eachKernel(t, func(t *testing.T, top string, o *Opener) {
		outside := t.TempDir()
		must(t, os.Mkdir(top+"/dir", 0o700))
		for _, path := range []string{top + "/file", outside + "/file"} {
			must(t, os.WriteFile(path, nil, 0o600))
		}
		roottest.Bind(t, outside, top+"/dir")
		roottest.Bind(t, outside+"/file", top+"/file")
		at := handle(t, top)
		for _, name := range []string{"dir", "file"} {
			_, lookErr := o.Look(at, name)
			if !errors.Is(lookErr, unix.EXDEV) || !o.MountedOn(at, name) {
				t.Errorf("look at %s: %v", name, lookErr)
			}
		}
		if _, err := o.Directory(at, "dir"); !errors.Is(err, unix.EXDEV) {
			t.Errorf("open: %v", err)
		}
	})
}

// TestAbove: the way back is the way down, or an error.
func TestAbove(t *testing.T) {
	eachKernel(t, func(t *testing.T, top string, o *Opener) {
		must(t, os.MkdirAll(top+"/above/below", 0o700))
		must(t, os.Mkdir(top+"/other", 0o700))
		id, err := Identify(handle(t, top+"/above"))
		must(t, err)
		below := handle(t, top+"/above/below")
		fd, err := o.Above(below, id)
		must(t, err)
		unix.Close(fd)
		must(t, os.Rename(top+"/above/below", filepath.Join(top, "other/below")))
		if _, err := o.Above(below, id); !errors.Is(err, ErrMoved) {
			t.Errorf("after a move: %v, want %v", err, ErrMoved)
		}
	})
}
