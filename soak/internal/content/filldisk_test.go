package content

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/soak/internal/workload"
)

// tmpfs mounts a small file system until the end of the test.
func tmpfs(t *testing.T, options string) string {
	t.Helper()
	if os.Getenv("KATBOX_ROOT_TESTS") != "1" {
		t.Skip("this machine lacks the right to mount: KATBOX_ROOT_TESTS is not 1; make check sets it")
	}
	dir := t.TempDir()
	if err := unix.Mount("soak-test", dir, "tmpfs", 0, options); err != nil {
		t.Fatalf("mount a tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Errorf("unmount %s, of which no handle may be open: %v", dir, err)
		}
	})
	return dir
}

func TestFillOnAFullDisk(t *testing.T) {
	s := Spec{ID: "csi-1", Outside: "/", Content: workload.Content{Seed: 1, Files: 100, Bytes: 100_000, Names: true, Deep: true}}
	for name, options := range map[string]string{"blocks": "size=1m", "inodes": "nr_inodes=50"} {
		t.Run(name, func(t *testing.T) {
			dir := tmpfs(t, options)
			done, err := Fill(dir, s)
			if !errors.Is(err, unix.ENOSPC) || !done.Marker || done.Entries == 0 || done.Bytes == 0 {
				t.Fatalf("filled %+v, error %v, want ENOSPC", done, err)
			}
			// What had no room is not there, and the rest is whole.
			if err := Verify(dir, s, done); err != nil {
				t.Error(err)
			}
			if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1+done.Entries {
				t.Errorf("%d entries, error %v, want the marker and %d", len(entries), err, done.Entries)
			}
		})
	}
	t.Run("not even the marker", func(t *testing.T) {
		dir := tmpfs(t, "nr_inodes=1")
		if done, err := Fill(dir, s); !errors.Is(err, unix.ENOSPC) || done != (Filled{}) {
			t.Errorf("filled %+v, error %v, want nothing and ENOSPC", done, err)
		}
	})
}

func TestFill(t *testing.T) {
	for name, tt := range map[string]struct {
		options string
		fill    func(context.Context, string) (func() error, error)
	}{
		"blocks":           {"size=3m", FillDisk},
		"no block at all":  {"size=4k", FillDisk},
		"inodes":           {"nr_inodes=2500", FillInodes},
		"no inodes at all": {"nr_inodes=1", FillInodes},
	} {
		t.Run(name, func(t *testing.T) {
			dir := tmpfs(t, tt.options)
			var before, after unix.Statfs_t
			if err := unix.Statfs(dir, &before); err != nil {
				t.Fatal(err)
			}
			release, err := tt.fill(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "more"), []byte("x"), 0o644); !errors.Is(err, unix.ENOSPC) {
				t.Errorf("writing on a full disk: error %v", err)
			}
			os.Remove(filepath.Join(dir, "more"))
			for range 2 {
				if err := release(); err != nil {
					t.Fatal(err)
				}
			}
			if err := unix.Statfs(dir, &after); err != nil || after.Bfree != before.Bfree || after.Ffree != before.Ffree {
				t.Errorf("before %+v, after %+v, error %v", before, after, err)
			}
		})
	}
}

// TestFillEnds: the end of a run does not wait for a full disk.
func TestFillEnds(t *testing.T) {
	reason := errors.New("the run is over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	for name, fill := range map[string]func(context.Context, string) (func() error, error){"disk": FillDisk, "inodes": FillInodes} {
		dir := t.TempDir()
		release, err := fill(ctx, dir)
		if err == nil || release != nil || name == "disk" && !errors.Is(err, reason) {
			t.Errorf("%s: error %v, want the reason of the end", name, err)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
			t.Errorf("%s: left %v, error %v", name, entries, err)
		}
	}
}

func TestFillNeedsAVolume(t *testing.T) {
	if _, err := FillDisk(t.Context(), filepath.Join(t.TempDir(), "nothing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

func TestCheckReadOnly(t *testing.T) {
	dir := t.TempDir()
	if err := CheckReadOnly(dir); err == nil || !strings.Contains(err.Error(), "succeeded") {
		t.Errorf("a writable directory: error %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("left %v, error %v", entries, err)
	}
	if err := CheckReadOnly(filepath.Join(dir, "nothing")); err == nil {
		t.Error("what is not there is no read-only directory")
	}
	readOnly := tmpfs(t, "size=1m")
	if err := unix.Mount("", readOnly, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	if err := CheckReadOnly(readOnly); err != nil {
		t.Error(err)
	}
}
