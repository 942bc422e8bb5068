package faults

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/host"
	"github.com/katbox/katbox/soak/internal/mounttest"
	"github.com/katbox/katbox/soak/internal/workload"
)

// published is a volume with a file in it, mounted as a driver does.
func published(t *testing.T) *history.Volume {
	t.Helper()
	mounttest.Need(t)
	v := unpublished(t)
	try(t, host.Bind(v.Data, v.Target))
	t.Cleanup(func() {
		if mounted, _ := host.MountedAt(v.Target); mounted {
			try(t, host.Unmount(v.Target))
		}
	})
	return v
}

// unpublished has all directories, and nothing mounted.
func unpublished(t *testing.T) *history.Volume {
	t.Helper()
	dir := t.TempDir()
	volumes := filepath.Join(dir, "pods/uid/volumes/kubernetes.io~csi/data-0")
	v := &history.Volume{ID: "csi-1", Target: filepath.Join(volumes, "mount"), Data: filepath.Join(dir, "work/uid/csi-1")}
	try(t, os.MkdirAll(v.Target, 0o755))
	try(t, os.MkdirAll(v.Data, 0o755))
	try(t, os.WriteFile(filepath.Join(v.Data, "file"), nil, 0o644))
	try(t, os.WriteFile(filepath.Join(volumes, volumeData), nil, 0o644))
	return v
}

func try(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantTrouble(t *testing.T, v *history.Volume, kind workload.FaultKind, lasts bool) {
	t.Helper()
	all := v.Troubles()
	if len(all) != 1 || all[0].Kind != kind || all[0].To.IsZero() != lasts {
		t.Errorf("troubles %+v, want %s, going on: %t", all, kind, lasts)
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func TestHold(t *testing.T) {
	v := published(t)
	release, err := Hold(v)
	try(t, err)
	wantTrouble(t, v, workload.BusyTarget, true)
	if err := host.Unmount(v.Target); !errors.Is(err, unix.EBUSY) {
		t.Errorf("unmount of a target that is held: %v, want EBUSY", err)
	}
	try(t, release())
	wantTrouble(t, v, workload.BusyTarget, false)
	try(t, host.Unmount(v.Target))
}

func TestMountInData(t *testing.T) {
	v := published(t)
	outside := t.TempDir()
	try(t, os.WriteFile(filepath.Join(outside, "theirs"), nil, 0o644))
	release, err := MountInData(v, outside)
	try(t, err)
	wantTrouble(t, v, workload.ForeignMount, true)
	if !exists(filepath.Join(v.Data, foreignName, "theirs")) {
		t.Error("what is mounted does not show in the data directory")
	}
	// The driver takes the volume down and sets it aside.
	try(t, host.Unmount(v.Target))
	try(t, os.Rename(v.Data, v.Data+"-moved"))
	try(t, release())
	wantTrouble(t, v, workload.ForeignMount, false)
	if exists(filepath.Join(v.Data+"-moved", foreignName, "theirs")) || !exists(filepath.Join(outside, "theirs")) {
		t.Error("it is mounted still, or what was mounted is gone")
	}
}

func TestMountInTarget(t *testing.T) {
	v := published(t)
	release, err := MountInTarget(v, t.TempDir())
	try(t, err)
	wantTrouble(t, v, workload.NestedMount, true)
	if err := host.Unmount(v.Target); !errors.Is(err, unix.EBUSY) {
		t.Errorf("unmount with a mount inside: %v, want EBUSY", err)
	}
	try(t, release())
	wantTrouble(t, v, workload.NestedMount, false)
	try(t, host.Unmount(v.Target))
}

func TestRemoveAndReplace(t *testing.T) {
	v := unpublished(t)
	try(t, Remove(v))
	wantTrouble(t, v, workload.VolumeRemoved, true)
	if exists(v.Data) {
		t.Error("the data directory is still there")
	}
	try(t, Remove(v))

	v = unpublished(t)
	outside := t.TempDir()
	try(t, Replace(v, outside))
	wantTrouble(t, v, workload.VolumeSymlink, true)
	if got, err := os.Readlink(v.Data); got != outside {
		t.Errorf("it is a symlink to %q, %v", got, err)
	}

	v = unpublished(t)
	try(t, os.RemoveAll(v.Data)) // of another volume the pod's directory is still there
	err := Replace(v, outside)
	if _, there := os.Lstat(v.Data); err != nil || there == nil {
		t.Errorf("%v: a volume that the driver has removed is there again", err)
	}
	if got := v.Troubles(); len(got) > 0 {
		t.Errorf("troubles %+v, want none", got)
	}
}

func TestUndercut(t *testing.T) {
	v := unpublished(t)
	pod := filepath.Join(v.Target, "../../../../")
	try(t, Undercut(v))
	wantTrouble(t, v, workload.PodRemoved, true)
	if exists(pod) {
		t.Error("the pod's directory is still there")
	}
	try(t, Undercut(v))

	v = published(t)
	try(t, Undercut(v))
	if !exists(filepath.Join(v.Target, "file")) || !exists(filepath.Join(filepath.Dir(v.Target), volumeData)) {
		t.Error("something of a mounted volume was removed")
	}
}

func TestUproot(t *testing.T) {
	v := published(t)
	before := time.Now()
	try(t, Uproot(v, false))
	if mounted, err := host.MountedAt(v.Target); mounted || err != nil {
		t.Errorf("mounted: %t, %v", mounted, err)
	}
	if !v.Troubled(before, time.Now(), workload.PodRemoved) {
		t.Error("the volume's story does not tell it")
	}
}
