package main

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/katbox/katbox/internal/testing/roottest"
)

// TestDeadDisk: a kubelet gets an answer for what is mounted, and each mount comes off, though the working directory's
// disk gives no answer any more. A daemon with another disk takes off what is left.
func TestDeadDisk(t *testing.T) {
	for _, fstype := range []string{"ext4", "xfs"} {
		if roottest.LeftOut(fstype) {
			continue
		}
		t.Run(fstype, func(t *testing.T) {
			disk := roottest.FileSystem(t, fstype, map[string]int{"ext4": 64, "xfs": 320}[fstype])
			d := newDaemon(t, "--afterlifespan", "1h", "--orphan-grace", "1h")
			must(t, os.MkdirAll(d.workdir(), 0o750))
			roottest.Bind(t, disk, d.workdir())
			d.start()
			const other = "8b4c1a9e-5f1c-4f0e-9d43-6a1b2c3d4e60"
			d.makePod(other)
			d.publish(testPod, volumeID(1))
			d.publish(other, volumeID(2))
			d.writeMarker(testPod)
			roottest.ShutDown(t, disk)

			d.publish(testPod, volumeID(1))
			if !d.mounted(d.target(testPod)) {
				t.Fatal("not mounted any more")
			}
			if err := d.tryUnpublish(testPod, volumeID(1)); err != nil && !strings.Contains(err.Error(), "that is not recorded") {
				t.Error(err)
			}
			if d.mounted(d.target(testPod)) {
				t.Error("still mounted")
			}

			d.signal(syscall.SIGKILL)
			d.launch()
			if code := d.wait(); code == 0 || !strings.Contains(d.stderr.String()+d.stdout.String(), "input/output error") {
				t.Errorf("on the dead disk the daemon ends with %d, and says\n%s%s", code, d.stdout, d.stderr)
			}
			if err := syscall.Unmount(d.workdir(), 0); err != nil {
				t.Fatal(err)
			}
			d.start()
			_, err := d.node.NodePublishVolume(t.Context(), d.request(other, volumeID(2)))
			if err == nil || !strings.Contains(err.Error(), "on another disk; delete its pod") {
				t.Errorf("published over the old disk: %v", err)
			}
			d.unpublish(other, volumeID(2))
			d.unpublish(testPod, volumeID(1))
			if d.mounted(d.target(other)) {
				t.Error("still mounted")
			}
			d.publish(other, volumeID(2))
			d.unpublish(other, volumeID(2))
		})
	}
}
