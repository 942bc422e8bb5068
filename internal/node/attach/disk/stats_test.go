package disk

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/node/attach"
	"github.com/katbox/katbox/internal/testing/roottest"
)

// TestStatsOfAnXFSThatWasShutDown: that is what the kernel does when its disk fails.
func TestStatsOfAnXFSThatWasShutDown(t *testing.T) {
	d, dir := formatted(t, xfs, small), target(t)
	mustMount(t, d.path, dir, xfs, false)
	roottest.ShutDown(t, dir)
	if stats, err := quiet.Stats(dir); err != nil || !stats.Abnormal || !strings.Contains(stats.Condition, "does not work") {
		t.Errorf("%+v, %v", stats, err)
	}
	mustUnmount(t, dir)
	mustMount(t, d.path, dir, xfs, false)
	if stats, err := quiet.Stats(dir); err != nil || stats.Abnormal {
		t.Errorf("mounted again: %+v, %v", stats, err)
	}
}

// TestStatsOfAnExt4WithErrors: the kernel makes it read-only for all its mounts, which stay as they are.
func TestStatsOfAnExt4WithErrors(t *testing.T) {
	d, dir, other := formatted(t, ext4, small), target(t), target(t)
	mustMount(t, d.path, dir, ext4, false)
	roottest.Bind(t, dir, other)
	if err := unix.Mount("", other, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	stats, err := quiet.Stats(dir)
	if err != nil || !stats.Abnormal || !strings.Contains(stats.Condition, "read-only") || stats.Space.Total.Bytes == 0 {
		t.Errorf("%+v, %v", stats, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err == nil {
		t.Error("it takes writes")
	}
}

func TestErrorsInOptions(t *testing.T) {
	for _, tt := range []struct {
		flags, options     string
		abnormal, readable bool
	}{
		{"rw,relatime", "rw,errors=remount-ro", false, false},
		{"ro,relatime", "ro,norecovery", false, false},
		{"ro,relatime", "rw", false, false},
		{"rw,relatime", "ro", true, true},
		{"rw,relatime", "rw,emergency_ro", true, true},
		{"rw,relatime", "rw,shutdown", true, false},
		{"ro,relatime", "ro,shutdown", true, false},
		{"rw,relatime", "ro,shutdown", true, false},
	} {
		m := attach.Mount{FSType: ext4, Flags: strings.Split(tt.flags, ","), Options: strings.Split(tt.options, ",")}
		if got, readable := afterErrors(m); (got != "") != tt.abnormal || readable != tt.readable {
			t.Errorf("%s, %s: %q, readable: %t", tt.flags, tt.options, got, readable)
		}
	}
}
