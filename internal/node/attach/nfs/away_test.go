package nfs_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/node/attach"
	"github.com/katbox/katbox/internal/node/attach/nfs"
	"github.com/katbox/katbox/internal/testing/array/dataplane"
	"github.com/katbox/katbox/internal/testing/attachtest"
	"github.com/katbox/katbox/internal/testing/roottest"
)

// TestArrayServerAway holds what the package's comment says waits while the server is away, and what does not.
func TestArrayServerAway(t *testing.T) {
	for _, how := range []dataplane.Away{dataplane.Network, dataplane.Down} {
		t.Run(string(how), func(t *testing.T) { serverAway(t, how) })
	}
}

func serverAway(t *testing.T, how dataplane.Away) {
	a := attachtest.NewArray(t)
	node := attachtest.ThisNode(t)
	// The kernel remembers no attributes: what asks the server, asks it each time.
	options := []string{"actimeo=0"}
	mount := func(name string) (dir, export string) {
		dir, export = directory(t), a.Attach(t, a.Create(t, name, 1, false), node, false).Export
		if err := nfs.Mount(export, dir, options, false); err != nil {
			t.Fatal(err)
		}
		return dir, export
	}
	used, usedExport := mount("used")
	idle, _ := mount("idle")
	published := filepath.Join(t.TempDir(), "published")
	late, lateDir := a.Attach(t, a.Create(t, "late", 1, false), node, false), directory(t)
	roottest.UnmountAtEnd(t, published)
	if err := tools.Bind(used, published, nil, false); err != nil {
		t.Fatal(err)
	}
	again := filepath.Join(t.TempDir(), "again")
	roottest.UnmountAtEnd(t, again)

	a.Leave(t, how)
	waiting := map[string]chan error{}
	wait := func(what string, call func() error) {
		done := make(chan error, 1)
		waiting[what] = done
		go func() { done <- call() }()
	}
	wait("stats", func() error { _, err := tools.Stats(used); return err })
	wait("a mount", func() error { return nfs.Mount(late.Export, lateDir, nil, false) })
	wait("a look at what is in it", func() error { _, err := os.ReadDir(used); return err })

	// None of these waits.
	for _, step := range []struct {
		what string
		call func() error
	}{
		{"the mount table", func() error { _, err := attach.Table(); return err }},
		{"a look", func() error {
			at, err := attach.Look(used)
			if !at.Mounted || !at.Directory {
				t.Errorf("a look: %+v", at)
			}
			return err
		}},
		{"a mount that is there", func() error { return nfs.Mount(usedExport, used, options, false) }},
		{"a bind", func() error { return tools.Bind(used, again, nil, false) }},
		{"the same again", func() error { return tools.Bind(used, again, nil, false) }},
		{"an unmount of a bind", func() error { return tools.Unmount(published) }},
		{"the removal of its directory", func() error { return tools.Remove(published) }},
		{"an unmount of an export, not the server's last", func() error { return tools.Unmount(idle) }},
	} {
		if err := step.call(); err != nil {
			t.Errorf("%s: %v", step.what, err)
		}
	}
	for what, done := range waiting {
		select {
		case err := <-done:
			t.Errorf("%s did not wait for the server: %v", what, err)
		default:
		}
	}
	a.Return(t)
	for what, done := range waiting {
		if err := <-done; err != nil {
			t.Errorf("%s, when the server is back: %v", what, err)
		}
	}
}

// TestArrayLastUnmountWhileAway: the kernel takes leave of a server with the last mount of it, which waits for the
// server, and takes the mount out of the table before that.
func TestArrayLastUnmountWhileAway(t *testing.T) {
	for _, how := range []dataplane.Away{dataplane.Network, dataplane.Down} {
		t.Run(string(how), func(t *testing.T) {
			a := attachtest.NewArray(t)
			dir := directory(t)
			if err := nfs.Mount(a.Attach(t, a.Create(t, "one", 1, false), attachtest.ThisNode(t), false).Export, dir, nil, false); err != nil {
				t.Fatal(err)
			}
			a.Leave(t, how)
			done := make(chan error, 1)
			go func() { done <- tools.Unmount(dir) }()
			for mountedAt(t, dir).Target != "" {
				time.Sleep(10 * time.Millisecond)
			}
			select {
			case err := <-done:
				t.Errorf("it did not wait for the server: %v", err)
				done <- err
			default:
			}
			a.Return(t)
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}
