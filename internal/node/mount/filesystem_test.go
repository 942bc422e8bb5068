package mount

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/testing/roottest"
)

func TestSplitOptions(t *testing.T) {
	for _, tt := range []struct {
		options string
		flags   Flags
		own     []string
	}{
		{options: ""},
		{options: "defaults,_netdev,rw,exec,suid", flags: unix.MS_RELATIME},
		{options: "ro", flags: unix.MS_RDONLY | unix.MS_RELATIME},
		{options: "ro,rw", flags: unix.MS_RELATIME},
		{options: "noatime,sync,discard,commit=5", flags: unix.MS_NOATIME | unix.MS_SYNCHRONOUS, own: []string{"discard", "commit=5"}},
		{options: "nosuid,nodev,noexec,lazytime,dirsync",
			flags: unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_LAZYTIME | unix.MS_DIRSYNC | unix.MS_RELATIME},
		{options: "noatime,strictatime", flags: unix.MS_STRICTATIME},
		{options: "bind,remount", own: []string{"bind", "remount"}},
	} {
		flags, own := SplitOptions(strings.FieldsFunc(tt.options, func(r rune) bool { return r == ',' }))
		if flags != tt.flags || !reflect.DeepEqual(own, tt.own) {
			t.Errorf("%s: %#x, %q; want %#x, %q", tt.options, flags, own, tt.flags, tt.own)
		}
	}
}

func TestFileSystem(t *testing.T) {
	_, target := dirs(t)
	if err := FileSystem("katbox-test", target, "tmpfs", ReadOnly, "size=1m"); err != nil {
		t.Fatal(err)
	}
	if !isMountPoint(t, New(), target) {
		t.Error("nothing is mounted")
	}
	if readOnly, err := New().ReadOnly(target); err != nil || !readOnly {
		t.Errorf("read-only %t, %v", readOnly, err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"a link":             FileSystem("katbox-test", link, "tmpfs", 0, ""),
		"nothing":            FileSystem("katbox-test", target+"x", "tmpfs", 0, ""),
		"a relative path":    FileSystem("katbox-test", "x", "tmpfs", 0, ""),
		"an unknown type":    FileSystem("katbox-test", target, "no-such-type", 0, ""),
		"options it has not": FileSystem("katbox-test", target, "tmpfs", 0, "no-such-option"),
	} {
		if err == nil {
			t.Errorf("mounted on or with %s", what)
		}
	}
}

func TestBindFile(t *testing.T) {
	eachKernel(t, func(t *testing.T, m *Mounter) {
		source, _ := dirs(t)
		file, target := filepath.Join(source, "file"), filepath.Join(t.TempDir(), "target")
		if err := os.WriteFile(target, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		roottest.UnmountAtEnd(t, target)
		if err := m.BindFile(file, target, []string{"bind", "ro"}); err != nil {
			t.Fatal(err)
		}
		if data, err := os.ReadFile(target); err != nil || string(data) != "data" {
			t.Errorf("%q, %v", data, err)
		}
		if err := os.WriteFile(target, []byte("x"), 0o600); !errors.Is(err, unix.EROFS) {
			t.Errorf("write: %v", err)
		}
		if err := m.Unmount(target); err != nil {
			t.Error(err)
		}
		fifo, link := filepath.Join(source, "fifo"), filepath.Join(source, "link")
		if err := errors.Join(unix.Mkfifo(fifo, 0o600), os.Symlink(file, link)); err != nil {
			t.Fatal(err)
		}
		for what, err := range map[string]error{
			"a directory":   m.BindFile(source, target, []string{"bind"}),
			"a FIFO":        m.BindFile(fifo, target, []string{"bind"}),
			"a link":        m.BindFile(link, target, []string{"bind"}),
			"onto a link":   m.BindFile(file, link, []string{"bind"}),
			"without bind":  m.BindFile(file, target, nil),
			"other options": m.BindFile(file, target, []string{"bind", "size=1m"}),
		} {
			if err == nil {
				t.Errorf("bound: %s", what)
			}
		}
	})
}
