package main

import (
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
