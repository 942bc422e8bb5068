package retained

import (
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// TestKept volumes do not go, whatever the time, the disk or their namespace demands, until they are taken. They
// count as what their namespace retains.
func TestKept(t *testing.T) {
	const size = 100 * sector
	limit := volume.Size{Bytes: 250 * sector}
	q := &Index{Fair: true, MaxRetained: func(namespace string) volume.Size {
		if namespace == "greedy" {
			return limit
		}
		return volume.Size{}
	}}
	kept := retained("kept", 0, time.Hour)
	kept.Namespace = "greedy"
	q.Put(kept)
	q.Keep(kept.ID, true)
	q.Measured(kept.ID, kept.Unpublished, volume.Size{Bytes: 2 * size, Inodes: 1})
	now := epoch.Add(10 * time.Minute)
	if _, ok := q.Surplus(now); ok {
		t.Fatal("a namespace loses a volume, and has only one that is kept")
	}
	put(q, "other", "modest", time.Minute, volume.Size{Bytes: size, Inodes: 1})
	put(q, "free", "greedy", 2*time.Minute, volume.Size{Bytes: size, Inodes: 1})
	c, ok := q.Surplus(now)
	if !ok || c.ID() != "free" {
		t.Fatalf("what is kept does not count: %v", ok)
	}
	takeChosen(q, c)
	if _, ok := q.Surplus(now); ok {
		t.Error("a namespace loses more than goes")
	}
	put(q, "again", "greedy", 3*time.Minute, volume.Size{Bytes: sector, Inodes: 1})
	if c, ok := q.Early(always, 0, volume.ForBytes); !ok || c.ID() != "again" {
		t.Error("the namespace with most does not lose its own first")
	}
	for _, want := range []volume.ID{"again", "other"} {
		c, ok := q.Early(always, 0, volume.ForBytes)
		if !ok || c.ID() != want {
			t.Fatalf("%s goes, want %s", c.ID(), want)
		}
		takeChosen(q, c)
	}
	_, over := q.Over()
	_, early := q.Early(always, 0, volume.ForBytes)
	_, guaranteed := q.Guaranteed(volume.ForBytes)
	if over || early || guaranteed || q.Len() != 1 || q.Waiting() != 0 || q.Bytes() != 2*size {
		t.Errorf("what is kept goes: over %t, early %t, at the floor %t; %d volumes", over, early, guaranteed, q.Len())
	}
	taken, ok := take(q, "kept")
	if !ok || taken.Size.Bytes != 2*size || len(q.namespaces) != 0 || q.tenants.total != (volume.Size{}) || q.Len() != 0 {
		t.Errorf("taken %+v, %t; left are %v of %v", taken, ok, q.tenants.total, q.namespaces)
	}
	q.Put(taken.Record)
	q.Keep("kept", true)
	if _, ok := q.Over(); ok {
		t.Error("what is kept goes")
	}
	q.Keep("kept", false)
	if c, ok := q.Over(); !ok || c.ID() != "kept" || q.Len() != 1 {
		t.Error("what was kept does not go")
	}
}
