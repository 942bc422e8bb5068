package testbed

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/katbox/katbox/soak/internal/host"
	"github.com/katbox/katbox/soak/internal/launch"
	"github.com/katbox/katbox/soak/internal/mounttest"
)

func TestLayout(t *testing.T) {
	parent := t.TempDir()
	empty, link := filepath.Join(parent, "empty"), filepath.Join(parent, "link")
	if err := errors.Join(os.Mkdir(empty, 0o755), os.Symlink(empty, link)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", parent)
	for _, test := range []struct {
		name, dir, want string
		created         bool
	}{
		{"temporary", "", filepath.Join(parent, "katbox-soak-"), true},
		{"new", filepath.Join(parent, "x", "y"), filepath.Join(parent, "x", "y"), true},
		{"empty", empty, empty, false},
		{"symlink", link, empty, false},
	} {
		l, err := MakeLayout(test.dir, "daemon.log")
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if !strings.HasPrefix(l.Dir, test.want) || l.Created != test.created {
			t.Errorf("%s: %s, created %t; want %s, %t", test.name, l.Dir, l.Created, test.want, test.created)
		}
		for _, dir := range []string{l.Work, filepath.Join(l.Pods(), DaemonPod), l.Canaries} {
			if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
				t.Errorf("%s: %s has %v, %v; want it empty", test.name, dir, entries, err)
			}
		}
		for _, file := range []string{l.Socket, l.Log, l.Image} {
			if filepath.Dir(file) != l.Dir {
				t.Errorf("%s: %s is not in %s", test.name, file, l.Dir)
			}
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Errorf("%s: %v", test.name, err)
			}
		}
		if err := l.Remove(); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		entries, err := os.ReadDir(l.Dir)
		if gone := errors.Is(err, os.ErrNotExist); gone != test.created || len(entries) > 0 {
			t.Errorf("%s: afterwards %v, %v", test.name, entries, err)
		}
	}
}

func TestLayoutRefuses(t *testing.T) {
	full := t.TempDir()
	file := filepath.Join(full, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	long := filepath.Join(t.TempDir(), strings.Repeat("x", maxSocketPath))
	for _, test := range []struct{ name, dir, log string }{
		{"not empty", full, "log"},
		{"a file", file, "log"},
		{"too long", long, "log"},
		{"no log", t.TempDir(), ""},
		{"log elsewhere", t.TempDir(), "../log"},
		{"log in the place of something else", t.TempDir(), "work"},
	} {
		if l, err := MakeLayout(test.dir, test.log); !errors.Is(err, launch.ErrUsage) {
			t.Errorf("%s: %+v, %v; want wrong usage", test.name, l, err)
		}
	}
	if _, err := os.Stat(file); err != nil {
		t.Errorf("what was in a directory that was refused: %v", err)
	}
	if _, err := os.Stat(long); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory that was refused stays: %v", err)
	}
}

func TestRemoveRefusesMounts(t *testing.T) {
	mounttest.Need(t)
	source, dir := t.TempDir(), t.TempDir()
	file := filepath.Join(source, "file")
	l, err := MakeLayout(dir, "log")
	if err := errors.Join(err, os.WriteFile(file, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mounttest.ClearAway(t, dir) })
	if err := host.Bind(source, l.Kubelet); err != nil {
		t.Fatal(err)
	}
	if err := l.Remove(); err == nil || !strings.Contains(err.Error(), l.Kubelet+" is still mounted") {
		t.Errorf("%v; want a refusal that names the mount", err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Errorf("what is mounted was removed: %v", err)
	}
	if _, err := os.Stat(l.Work); err != nil {
		t.Errorf("something was removed before the refusal: %v", err)
	}
	if err := host.Unmount(l.Kubelet); err != nil {
		t.Fatal(err)
	}
	if err := l.Remove(); err != nil {
		t.Errorf("after the unmount: %v", err)
	}
}
