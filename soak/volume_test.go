package main

import (
	"os"
	"path/filepath"
	"testing"
)

// mountedVolume is a prepared volume of which a symlink stands for the mount.
func mountedVolume(t *testing.T, readOnly bool) (layout, *volume) {
	t.Helper()
	l := layout{work: t.TempDir(), kubelet: t.TempDir()}
	pod := plan{testOptions()}.pod(0)
	pod.volumes[0].readOnly = readOnly
	v := newVolume(l, pod, pod.volumes[0])
	if err := v.prepare(); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(v.data, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(v.data, v.target); err != nil {
		t.Fatal(err)
	}
	return l, v
}

func TestMark(t *testing.T) {
	t.Run("writable", func(t *testing.T) {
		_, v := mountedVolume(t, false)
		if _, err := v.mark(); err != nil {
			t.Error(err)
		}
		if state, err := v.look(v.data); state != whole {
			t.Errorf("the marker is not in the data directory: %v", err)
		}
	})
	t.Run("should be read-only", func(t *testing.T) {
		_, v := mountedVolume(t, true)
		if broken, err := v.mark(); broken != writableVolume || err == nil {
			t.Errorf("%q, %v; want %q", broken, err, writableVolume)
		}
	})
	t.Run("mounted elsewhere", func(t *testing.T) {
		_, v := mountedVolume(t, false)
		if err := os.Remove(v.target); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(t.TempDir(), v.target); err != nil {
			t.Fatal(err)
		}
		if broken, err := v.mark(); broken != lostMarker || err == nil {
			t.Errorf("%q, %v; want %q", broken, err, lostMarker)
		}
	})
}

func TestDismissLeavesNothing(t *testing.T) {
	l, v := mountedVolume(t, false)
	if err := v.dismiss(); err == nil {
		t.Fatal("the volume could be dismissed with its target in place")
	}
	if err := v.prepare(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(v.target); err != nil {
		t.Fatal(err)
	}
	if err := v.dismiss(); err != nil {
		t.Fatal(err)
	}
	if err := dismissPod(l, v.pod); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(l.kubelet, "pods", "*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
