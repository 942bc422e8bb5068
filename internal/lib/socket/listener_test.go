package socket

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
)

func listen(t *testing.T, path string) *Listener {
	t.Helper()
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// leaveStale leaves a socket as a process does that was killed.
func leaveStale(t *testing.T, path string) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestListenTakesOverOnlyWhatNobodyServes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sub", "csi.sock")
	first := listen(t, path)
	if _, err := Listen(path); err == nil || !strings.Contains(err.Error(), "another process serves") {
		t.Errorf("second listener: %v, want that another process serves it", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	leaveStale(t, path)
	second := listen(t, path)
	if info, err := os.Lstat(path); err != nil || info.Mode().Perm() != 0o600 || !second.InPlace() {
		t.Errorf("after taking over a stale socket: %v, %v, want one of ours that only root may use", info, err)
	}
	notSocket := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(notSocket, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(notSocket); err == nil || !strings.Contains(err.Error(), "not a socket") {
		t.Errorf("a file: %v, want that it is not a socket", err)
	}
}

// TestServedByAProcessThatDoesNotAccept: a process that is too busy to accept connections keeps its socket.
func TestServedByAProcessThatDoesNotAccept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "csi.sock")
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrUnix{Name: path}), unix.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	for range 3 { // the second one finds no place to wait in
		if _, err := Listen(path); err == nil || !strings.Contains(err.Error(), "another process serves") {
			t.Errorf("%v, want that another process serves it", err)
		}
		waiting, err := net.Dial("unix", path)
		if err == nil {
			defer waiting.Close()
		}
	}
	if _, err := os.Lstat(path); err != nil {
		t.Error(err)
	}
}

// TestOnlyRootMayUseItFromTheStart: there is no moment between bind and chmod in which others could
// connect.
func TestOnlyRootMayUseItFromTheStart(t *testing.T) {
	before := unix.Umask(0)
	defer unix.Umask(before)
	var modes []fs.FileMode
	kernel.Inject(t, func(call, path string) error {
		if call != "Chmod" {
			return nil
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		modes = append(modes, info.Mode().Perm())
		return nil
	})
	listen(t, filepath.Join(t.TempDir(), "csi.sock"))
	if !slices.Equal(modes, []fs.FileMode{0o600}) {
		t.Errorf("modes before the chmod: %o, want 600", modes)
	}
}

func TestCloseRemovesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "csi.sock")
	l := listen(t, path)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("the socket is still there (%v)", err)
	}
}

// TestInPlace: whatever takes the file's place is noticed and not removed.
func TestInPlace(t *testing.T) {
	for name, replace := range map[string]func(t *testing.T, path string){
		"removed": func(*testing.T, string) {},
		"another": leaveStale,
		"a file that is not ours": func(t *testing.T, path string) {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"of another time": func(t *testing.T, path string) {
			leaveStale(t, path)
			if err := os.Chtimes(path, time.Time{}, time.Unix(1, 0)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "csi.sock")
			l := listen(t, path)
			if !l.InPlace() {
				t.Fatal("a new socket is not in its place")
			}
			// With another name its inode's number is not given away at once.
			if err := errors.Join(os.Link(path, path+".kept"), os.Remove(path)); err != nil {
				t.Fatal(err)
			}
			replace(t, path)
			before, _ := os.Lstat(path)
			if l.InPlace() {
				t.Error("still in its place")
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Lstat(path); before != nil && err != nil {
				t.Errorf("somebody else's file was removed: %v", err)
			}
		})
	}
}

func TestDirectoryReplaced(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "plugins")
	l := listen(t, filepath.Join(dir, "csi.sock"))
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if l.InPlace() {
		t.Error("in its place in a directory that is gone")
	}
	if err := os.Mkdir(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	if l.InPlace() {
		t.Error("in its place in another directory")
	}
}

func TestLost(t *testing.T) {
	l := listen(t, filepath.Join(t.TempDir(), "csi.sock"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Lost(ctx, time.Hour); err != nil {
		t.Errorf("it is there: %v", err)
	}
	lost := make(chan error)
	go func() { lost <- l.Lost(t.Context(), time.Millisecond) }()
	if err := os.Rename(l.path, l.path+".old"); err != nil {
		t.Fatal(err)
	}
	if err := <-lost; err == nil || !strings.Contains(err.Error(), l.path) {
		t.Errorf("%v, want the path that is lost", err)
	}
}
