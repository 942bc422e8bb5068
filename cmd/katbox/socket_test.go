package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSocketThatSomebodyRemoves: nobody could call the daemon any more, and
// whoever asks it for its health over HTTP would not hear of that.
func TestSocketThatSomebodyRemoves(t *testing.T) {
	d := newDaemon(t)
	d.start()
	d.publish(testPod, volumeID(1))
	if err := os.Remove(filepath.Join(d.dir, "csi.sock")); err != nil {
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
