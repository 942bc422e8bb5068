package localdisk

import (
	"path/filepath"
	"testing"

	"github.com/katbox/katbox/internal/node/attach"
)

// lostAt reports whether a device that has lost its file is mounted at a path.
func (p *testPool) lostAt(path string) bool {
	p.t.Helper()
	m := mountAt(p.t, path)
	if name, ok := p.Locations.NameOf(m); ok && Lost(m) {
		p.t.Errorf("what is mounted at %s is lost, and %s", path, name)
	}
	return Lost(m)
}

// mountAt returns what is mounted at a path.
func mountAt(t *testing.T, path string) attach.Mount {
	t.Helper()
	table, err := attach.Table()
	must(t, err)
	m, ok := attach.At(table, path)
	if !ok {
		t.Fatalf("nothing is mounted at %s", path)
	}
	return m
}

// TestLostDevice is staged anew at the same path; its pod does not get the device of the volume by that.
func TestLostDevice(t *testing.T) {
	p := newPool(t, imageOnExt4)
	a := p.block("pvc-a")
	staging := p.stage(a)
	at, published := filepath.Join(staging, DeviceFile), publish(t, staging)
	if p.lostAt(at) || p.lostAt(published) {
		t.Fatal("a device is taken for lost that has its file")
	}
	p.lose("pvc-a")
	if !p.lostAt(at) || !p.lostAt(published) {
		t.Error("a device is not known as lost")
	}
	for range 2 {
		must(t, p.Stage(t.Context(), a, staging, nil, false))
		if got := begin(t, at); got != "pvc-a" || p.lostAt(at) {
			t.Errorf("the device that is staged begins with %q", got)
		}
	}
	if got := begin(t, published); got != "" || !p.lostAt(published) {
		t.Errorf("the pod of the lost device reads %q", got)
	}
	must(t, p.tools.Unmount(published))
	must(t, p.Locations.Unstage(t.Context(), "pvc-a", staging))
	for name, want := range map[string]bool{"loop999999": true, "loop0": false, "loopback": false} {
		if got := Lost(attach.Mount{FSType: "devtmpfs", Root: "/" + name}); got != want {
			t.Errorf("%s is lost: %t", name, got)
		}
	}
}

// TestLostDeviceIsUnstaged: nothing is left of it.
func TestLostDeviceIsUnstaged(t *testing.T) {
	p := newPool(t, imageOnExt4)
	staging := p.stage(p.block("pvc-a"))
	p.lose("pvc-a")
	must(t, p.Locations.Unstage(t.Context(), "pvc-a", staging))
	table, err := attach.Table()
	must(t, err)
	if m, ok := attach.At(table, filepath.Join(staging, DeviceFile)); ok {
		t.Errorf("%+v is left", m)
	}
}
