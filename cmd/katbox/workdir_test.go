package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/katbox/katbox/internal/roottest"
)

// ended tells whether the daemon's process has ended by itself.
func (d *daemon) ended() bool {
	select {
	case <-d.exited:
		return true
	default:
		return false
	}
}

// TestCoveredWorkingDirectory: with another file system mounted over the working
// directory, or the directory moved away, the daemon deletes nothing that is still
// mounted, and ends with a line.
func TestCoveredWorkingDirectory(t *testing.T) {
	for name, tt := range map[string]struct {
		cover, uncover func(d *daemon) error
	}{
		"mounted over": {
			cover:   func(d *daemon) error { return syscall.Mount("other", d.workdir(), "tmpfs", 0, "") },
			uncover: func(d *daemon) error { return syscall.Unmount(d.workdir(), 0) },
		},
		"moved": {
			cover:   func(d *daemon) error { return os.Rename(d.dir+"/volumes", d.dir+"/aside") },
			uncover: func(d *daemon) error { return os.Rename(d.dir+"/aside", d.dir+"/volumes") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDaemon(t, "--afterlifespan", "1s")
			if err := errors.Join(os.MkdirAll(d.dir+"/volumes/work", 0o750), os.Symlink("volumes/work", d.workdir())); err != nil {
				t.Fatal(err)
			}
			d.start()
			id, elsewhere := volumeID(1), filepath.Join(d.dir, "elsewhere")
			d.publish(testPod, id)
			d.writeMarker(testPod)
			if err := os.Mkdir(elsewhere, 0o750); err != nil {
				t.Fatal(err)
			}
			roottest.Bind(t, d.data(testPod, id), elsewhere)
			d.unpublish(testPod, id)
			if err := tt.cover(d); err != nil {
				t.Fatal(err)
			}
			d.eventually("the daemon has ended", d.ended)
			if code := d.wait(); code != 1 || !strings.Contains(d.stderr.String(), d.workdir()) || strings.Count(d.stderr.String(), "\n") != 1 {
				t.Errorf("exit code %d, stderr %q, want 1 and one line that names the directory", code, d.stderr)
			}
			if _, err := os.Lstat(filepath.Join(elsewhere, "marker")); err != nil {
				t.Errorf("the data is gone though it is mounted: %v", err)
			}
			if err := tt.uncover(d); err != nil {
				t.Fatal(err)
			}
			d.start()
			d.passDeadline()
			d.wantMarker(testPod, id, "mounted elsewhere")
			if err := syscall.Unmount(elsewhere, 0); err != nil {
				t.Fatal(err)
			}
			d.eventually("deleted", d.gone(testPod, id))
		})
	}
}

// TestPublishUnderACoveredWorkingDirectory: what is mounted for a pod is the data
// directory that the daemon knows, not one of the same name that lies over it.
func TestPublishUnderACoveredWorkingDirectory(t *testing.T) {
	d := newDaemon(t, "--afterlifespan", "1h", "--orphan-grace", "1h")
	d.start()
	id := volumeID(1)
	d.publish(testPod, id)
	d.writeMarker(testPod)
	d.unpublish(testPod, id)
	if err := errors.Join(syscall.Mount("copy", d.workdir(), "tmpfs", 0, ""), os.MkdirAll(d.data(testPod, id), 0o750)); err != nil {
		t.Fatal(err)
	}
	d.publish(testPod, id)
	if _, err := os.Lstat(filepath.Join(d.target(testPod), "marker")); err != nil {
		t.Errorf("another directory is mounted: %v", err)
	}
	d.unpublish(testPod, id)
	if d.mounted(d.target(testPod)) {
		t.Error("still mounted")
	}
}
