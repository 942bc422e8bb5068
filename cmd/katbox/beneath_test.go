package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestPodThatMountsOnItsVolume: what a sidecar with propagation Bidirectional has mounted on the volume hides it from
// no call. It comes off when the kubelet has asked for it for long.
func TestPodThatMountsOnItsVolume(t *testing.T) {
	d := newDaemon(t, "--afterlifespan", "1h", "--orphan-grace", "1s")
	d.start()
	id := volumeID(1)
	d.publish(testPod, id)
	d.writeMarker(testPod)
	if err := syscall.Mount("bucket", d.target(testPod), "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	d.publish(testPod, id)
	d.signal(syscall.SIGTERM)
	d.start()
	d.publish(testPod, id)
	err := d.tryUnpublish(testPod, id)
	if err == nil || !strings.Contains(err.Error(), `"tmpfs" of "bucket"`) {
		t.Errorf("%v does not say which mount it is", err)
	}
	d.eventually("unpublished", func() bool { return d.tryUnpublish(testPod, id) == nil })
	if d.mounted(d.target(testPod)) {
		t.Error("still mounted")
	}
	d.wantMarker(testPod, id, "retained")
}

// TestPodThatMountsWhatIsGone: what a pod has mounted on its volume stays, also once it has been removed where it is from.
func TestPodThatMountsWhatIsGone(t *testing.T) {
	d := newDaemon(t)
	d.start()
	id := volumeID(1)
	d.publish(testPod, id)
	d.writeMarker(testPod)
	other := filepath.Join(t.TempDir(), "other")
	err := errors.Join(os.Mkdir(other, 0o700), syscall.Mount(other, d.target(testPod), "", syscall.MS_BIND, ""), os.Remove(other))
	if err != nil {
		t.Fatal(err)
	}
	d.publish(testPod, id)
	if err := syscall.Unmount(d.target(testPod), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(d.target(testPod), "marker")); err != nil {
		t.Errorf("beneath what the pod had mounted: %v", err)
	}
}
