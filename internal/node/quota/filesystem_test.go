package quota

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/roottest"
)

func open(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// TestDetect on file systems in each state, and through the node of a device.
func TestDetect(t *testing.T) {
	for _, state := range []State{Enforced, Accounted, None} {
		for _, dir := range roottest.Quotas(t, state.String()) {
			t.Run(state.String()+filepath.Base(dir), func(t *testing.T) {
				f := Detect(int(open(t, dir).Fd()))
				if got, reason := f.State(); got != state || (reason == nil) != (state != None) {
					t.Fatalf("%s, %v", got, reason)
				}
				if f.Inside() != 0 {
					t.Errorf("it is in project %d", f.Inside())
				}
				if state == None {
					return
				}
				flags, err := kernel.QuotaFlags(f.quotas)
				if err != nil {
					t.Fatal(err)
				}
				if old, err := f.throughDevice(); err != nil || old != flags || f.quotas.Device == "" {
					t.Fatalf("through the device %q: flags %#x, %v, want %#x", f.quotas.Device, old, err, flags)
				}
				if left, err := filepath.Glob("/dev/katbox-*"); err != nil || len(left) > 0 {
					t.Errorf("left in /dev: %q, %v", left, err)
				}
				playProject(t, f, dir)
			})
		}
	}
}

// TestNoQuotasHere is a file system without projects.
func TestNoQuotasHere(t *testing.T) {
	f := Detect(int(open(t, "/proc").Fd()))
	if state, reason := f.State(); state != None || reason == nil {
		t.Errorf("%s, %v", state, reason)
	}
}

// TestProject sets a project and its limits, and reads what it uses.
func TestProject(t *testing.T) {
	for _, dir := range roottest.Quotas(t, Enforced.String()) {
		t.Run(filepath.Base(dir), func(t *testing.T) { playProject(t, Detect(int(open(t, dir).Fd())), dir) })
	}
}

func playProject(t *testing.T, f *FileSystem, dir string) {
	const id, other = 4_000_000_000, 4_000_000_007
	if q, err := f.Read(id); err != nil || !q.isFree() {
		t.Fatalf("before: %+v, %v", q, err)
	}
	top, err := os.MkdirTemp(dir, "project")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(os.RemoveAll(top), f.SetLimit(id, volume.Size{}), f.SetLimit(other, volume.Size{})); err != nil {
			t.Error(err)
		}
	})
	if err := f.SetProject(int(open(t, top).Fd()), id); err != nil {
		t.Fatal(err)
	}
	if inside := Detect(int(open(t, top).Fd())).Inside(); inside != id {
		t.Errorf("a directory with project %d gives %d to what is made in it", id, inside)
	}
	limit := volume.Size{Bytes: 8<<20 + 1, Inodes: 20}
	for id, limit := range map[uint32]volume.Size{id: limit, other: {Inodes: 3}} {
		if err := f.SetLimit(id, limit); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(top+"/file", make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	q, err := f.Read(id)
	if err != nil || q.ID != id || q.Used.Inodes != 2 || q.Used.Bytes < 1<<20 || q.Used.Bytes > 2<<20+8192 || q.Limit.Inodes != 20 ||
		q.Limit.Bytes < limit.Bytes || q.Limit.Bytes > limit.Bytes+4096 {
		t.Errorf("%+v, %v", q, err)
	}
	var all []uint32
	for q, err := range f.From(id) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, q.ID)
	}
	if !slices.Equal(all, []uint32{id, other}) {
		t.Errorf("projects %d, want %d", all, []uint32{id, other})
	}
}
