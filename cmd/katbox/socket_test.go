package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/katbox/katbox/internal/testing/roottest"
)

// TestRemovedSocket: the daemon ends, because the kubelet can no longer call it and its
// health over HTTP would not show that.
func TestRemovedSocket(t *testing.T) {
	d := newDaemon(t)
	d.start()
	d.publish(testPod, volumeID(1))
	if err := os.Remove(d.layout().Socket); err != nil {
		t.Fatal(err)
	}
	if code := d.wait(); code != 1 || !strings.Contains(d.stderr.String(), "csi.sock") {
		t.Errorf("exit code %d and %q, want 1 and the socket's name", code, d.stderr)
	}
	d.start()
	if !d.mounted(d.target(testPod)) {
		t.Error("the volume was unmounted")
	}
	d.unpublish(testPod, volumeID(1))
}

// TestSocketsOnAFullDisk: a daemon that starts on a disk without inodes frees some before it
// can make its sockets there.
func TestSocketsOnAFullDisk(t *testing.T) {
	mnt := roottest.FileSystem(t, "ext4", 100)
	d := newDaemon(t, "--workdir", filepath.Join(mnt, "work"))
	roottest.UnmountBelowAtEnd(t, mnt)
	d.start()
	d.publish(testPod, volumeID(1))
	must(t, writeFiles(filepath.Join(mnt, "work", testPod, volumeID(1)), 200, 1), os.Mkdir(filepath.Join(mnt, "run"), 0o700))
	d.unpublish(testPod, volumeID(1))
	d.signal(syscall.SIGTERM)
	must(t, os.Mkdir(filepath.Join(mnt, "filler"), 0o700))
	fillInodes(t, filepath.Join(mnt, "filler"))

	csi := filepath.Join(mnt, "run/csi.sock")
	d.flags = append(d.flags, "--endpoint", "unix://"+csi, "--registration-dir", filepath.Join(mnt, "run"), "--http-endpoint", httpEndpoint())
	d.launch() // without headroom nothing makes room
	d.eventually("waiting for room", func() bool {
		_, why, err := httpGet("/readyz")
		return err == nil && strings.Contains(why, "not open")
	})
	if code := d.signal(syscall.SIGTERM); code != 0 || exists(csi) {
		t.Errorf("exit code %d, want 0 and no socket\n%s", code, d.stderr)
	}
	d.flags = append(d.flags, "--headroom", "0.001")
	d.launch()
	d.eventually("the sockets are there", func() bool {
		return exists(csi) && exists(filepath.Join(mnt, "run", filepath.Base(d.registrationSocket())))
	})
	if code := d.signal(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d, want 0\n%s", code, d.stderr)
	}
}
