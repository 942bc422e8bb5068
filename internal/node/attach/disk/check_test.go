package disk

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/katbox/katbox/internal/testing/roottest"
)

func TestCheckOfAFileSystem(t *testing.T) {
	// The inode of the top directory, whose place debugfs knows, loses its type: no repair without a person.
	broken := func(t *testing.T, d device) {
		if out, err := roottest.Run("debugfs", "-w", "-R", "clri <2>", d.path); err != nil {
			t.Fatal(err, out)
		}
		if out, err := roottest.Run("debugfs", "-w", "-R", "set_super_value state 2", d.path); err != nil {
			t.Fatal(err, out)
		}
	}
	// The count of free blocks is wrong: fsck corrects that by itself.
	correctable := func(t *testing.T, d device) {
		for _, request := range []string{"set_super_value free_blocks_count 1", "set_super_value state 2"} {
			if out, err := roottest.Run("debugfs", "-w", "-R", request, d.path); err != nil {
				t.Fatal(err, out)
			}
		}
	}
	for _, tt := range []struct {
		name    string
		prepare func(*testing.T, device)
		lines   int
		fails   bool
	}{
		{name: "clean", prepare: func(*testing.T, device) {}},
		{name: "correctable", prepare: correctable, lines: 1},
		{name: "broken", prepare: broken, fails: true},
		{name: "no file system", prepare: func(t *testing.T, d device) { d.write(t, 1024, strings.Repeat("\x00", 4096)) }, lines: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := formatted(t, ext4, 16)
			tt.prepare(t, d)
			var lines []string
			err := logging(&lines).Check(t.Context(), d.path, ext4)
			if (err != nil) != tt.fails || len(lines) != tt.lines {
				t.Errorf("%v, log %q", err, lines)
			}
		})
	}
}

// TestCheckWithoutFsck: as with disks of Kubernetes' own, the mount has to do.
func TestCheckWithoutFsck(t *testing.T) {
	d := newDevice(t, 16)
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "dev"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, d.path), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	roottest.Bind(t, d.path, filepath.Join(root, d.path))
	var lines []string
	tools := logging(&lines)
	tools.Root = root
	if err := tools.Check(t.Context(), d.path, ext4); err != nil || len(lines) != 1 {
		t.Errorf("%v, log %q", err, lines)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := quiet.Check(ctx, d.path, ext4); err == nil {
		t.Error("a check that was cut short is one that succeeded")
	}
}
