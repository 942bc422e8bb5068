package localdisk

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/katbox/katbox/internal/model/local"
	attachdisk "github.com/katbox/katbox/internal/node/attach/disk"
	"github.com/katbox/katbox/internal/testing/roottest"
)

// block makes a block volume that begins with its name.
func (p *testPool) block(name string) local.Record {
	p.t.Helper()
	r := record(name, 16*mib)
	r.Block = true
	r = p.make(r)
	image, err := os.OpenFile(filepath.Join(p.path, volumesName, name, imageName), os.O_WRONLY, 0)
	must(p.t, err)
	_, err = image.WriteString(name)
	must(p.t, errors.Join(err, image.Sync(), image.Close()))
	return r
}

// publish gives a staged block volume to a pod.
func publish(t *testing.T, staging string) (device string) {
	t.Helper()
	device = filepath.Join(t.TempDir(), "published")
	roottest.UnmountAtEnd(t, device)
	must(t, attachdisk.Tools{}.Bind(filepath.Join(staging, DeviceFile), device, nil, false))
	return device
}

// lose detaches the loop device of a block volume, as losetup -D on the node does with all of them.
func (p *testPool) lose(name string) (device string) {
	p.t.Helper()
	names, err := p.loops(name)
	if err != nil || len(names) != 1 {
		p.t.Fatalf("loop devices %q, %v", names, err)
	}
	if out, err := roottest.Run("losetup", "--detach", "/dev/"+names[0]); err != nil {
		p.t.Fatal(out, err)
	}
	if left, err := p.loops(name); err != nil || left != nil {
		p.t.Fatalf("%q are left, %v", left, err)
	}
	return names[0]
}

// begin returns what a device begins with; empty where it cannot be read.
func begin(t *testing.T, device string) string {
	t.Helper()
	file, err := os.Open(device)
	if err != nil {
		return ""
	}
	defer file.Close()
	content := make([]byte, 4096)
	n, err := file.Read(content)
	if err != nil {
		return ""
	}
	text, _, _ := bytes.Cut(content[:n], []byte{0})
	return string(text)
}

// TestNumberOfALostDevice is no other volume's while a pod has the node of the device.
func TestNumberOfALostDevice(t *testing.T) {
	p := newPool(t, imageOnExt4)
	a, b := p.block("pvc-a"), p.block("pvc-b")
	file := p.make(record("pvc-c", 16*mib))
	published := publish(t, p.stage(a))
	if got := begin(t, published); got != "pvc-a" {
		t.Fatalf("the pod reads %q", got)
	}
	lost := p.lose("pvc-a")
	for _, r := range []local.Record{b, file} {
		p.stage(r)
		if names, err := p.loops(r.Name); err != nil || len(names) != 1 || names[0] == lost {
			t.Errorf("%s has the device %q, %v, and a pod has %s", r.Name, names, err, lost)
		}
	}
	if got := begin(t, published); got != "" {
		t.Errorf("the pod of pvc-a reads %q", got)
	}
}

// TestNumberOfALostDeviceForReaders: what is shown to readers has a device as well.
func TestNumberOfALostDeviceForReaders(t *testing.T) {
	p := newPool(t, imageOnExt4)
	a, r := p.block("pvc-a"), p.make(record("pvc-b", 16*mib))
	published := publish(t, p.stage(a))
	lost := p.lose("pvc-a")
	shown, err := p.Show(t.Context(), r)
	must(t, err)
	names, err := p.loops("pvc-b")
	must(t, errors.Join(err, shown.End()))
	if len(names) != 1 || names[0] == lost {
		t.Errorf("readers have the device %q, and a pod has %s", names, lost)
	}
	if got := begin(t, published); got != "" {
		t.Errorf("the pod of pvc-a reads %q", got)
	}
}
