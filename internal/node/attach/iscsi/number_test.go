package iscsi

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/roottest"
)

// publishedAs mounts a node for a pod.
func publishedAs(t *testing.T, dev, name string) (target string) {
	t.Helper()
	target = filepath.Join(t.TempDir(), "published")
	for _, path := range []string{target, filepath.Join(dev, name)} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	roottest.Bind(t, filepath.Join(dev, name), target)
	return target
}

// TestArrayNumberOfAVanishedDisk: the kernel gives it to the next disk, which a pod that has the former one's node would
// read and write. So that disk goes at once, and none comes until the pod is gone.
func TestArrayNumberOfAVanishedDisk(t *testing.T) {
	roottest.Need(t)
	m, s := withSession(t)
	dev := t.TempDir()
	roottest.Tmpfs(t, dev, 0)
	published := publishedAs(t, dev, "sd5")
	m.must(os.Remove(filepath.Join(dev, "sd5"))) // as the kernel does
	m.array[5] = "volume-2"
	scan := m.path("sys/class/scsi_host/host1/scan")
	for n := range 3 {
		m.must(os.WriteFile(scan, nil, 0o600))
		d, err := m.i.Scan(t.Context(), s.Target, 5, Wanted{ID: "volume-2"})
		if !errors.Is(err, volume.ErrBusy) || !strings.Contains(err.Error(), published) {
			t.Errorf("%+v, %v", d, err)
		}
		if exists(m.path(m.diskDir(1, 5))) {
			t.Error("the pod has the disk")
		}
		// Even for a moment it has it only once.
		if word, err := os.ReadFile(scan); err != nil || (len(word) > 0) != (n == 0) {
			t.Errorf("%d: scanned %q, %v", n, word, err)
		}
	}
	m.must(unix.Unmount(published, 0))
	if d, err := m.i.Scan(t.Context(), s.Target, 5, Wanted{ID: "volume-2"}); err != nil || d.Name != "sd5" {
		t.Errorf("%+v, %v", d, err)
	}
}

// TestNumberOfAVanishedDiskThatIsTaken: another program has scanned, or the disk of another volume is published.
func TestNumberOfAVanishedDiskThatIsTaken(t *testing.T) {
	roottest.Need(t)
	m, s := withSession(t)
	dev := t.TempDir()
	roottest.Tmpfs(t, dev, 0)
	published := publishedAs(t, dev, "sd5")
	m.must(os.Remove(filepath.Join(dev, "sd5")))
	m.array[5], m.array[6] = "volume-2", "volume-3"
	m.disk(1, 1, 5, "volume-2")
	if d, err := m.i.Scan(t.Context(), s.Target, 5, Wanted{ID: "volume-2"}); !errors.Is(err, volume.ErrBusy) {
		t.Errorf("a disk that was there: %+v, %v", d, err)
	}
	if exists(m.path(m.diskDir(1, 5))) {
		t.Error("the pod has a disk that was there")
	}
	// With other numbers disks go on.
	m.file("", "sys/block/sd5/dev")
	publishedAs(t, dev, "sd6")
	delete(m.array, 5)
	if d, err := m.i.Scan(t.Context(), s.Target, 6, Wanted{ID: "volume-3"}); err != nil || d.Name != "sd6" {
		t.Errorf("another disk: %+v, %v", d, err)
	}
	m.must(unix.Unmount(published, 0))
}
