package local

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/files"
)

// retain makes a volume one that is kept without its claim.
func (h *harness) retain(name, claim, namespaceUID string, since time.Time) {
	h.Helper()
	comment := pools.Comment{
		Cluster: "c", Claim: claim, ClaimUID: "u-" + name, NamespaceUID: namespaceUID,
		Retained: &pools.Retention{Since: since, Until: since.Add(time.Hour)},
	}
	_, err := h.node.CommentVolume(h.bounded(), fast, name, comment.String())
	h.must(err)
}

// listed returns the IDs of what is listed.
func (h *harness) listed() (ids []string) {
	h.Helper()
	all, err := h.node.Retained(h.bounded())
	h.must(err)
	for _, d := range all {
		ids = append(ids, string(d.Record.ID))
	}
	return ids
}

// lost waits until a reading is lost, and returns why.
func (h *harness) lost(r *files.Reading) error {
	h.Helper()
	ctx, cancel := context.WithTimeout(r.Lost, time.Minute)
	defer cancel()
	<-ctx.Done()
	return context.Cause(ctx)
}

// TestRetainedVolumesAreListed: whose they were, until when they are kept, the one that was retained last first.
func TestRetainedVolumesAreListed(t *testing.T) {
	inWorld(t, func(h *harness) {
		since := time.Now().UTC()
		for _, name := range []string{"v1", "v2", "v3", "v4"} {
			h.must(h.create(name, gib))
		}
		h.must(h.snap("s1", "v1"))
		if ids := h.listed(); ids != nil {
			t.Errorf("listed %v, and nothing is retained", ids)
		}
		h.retain("v1", "shop/data", "ns-1", since)
		h.retain("v2", "shop/data", "ns-1", since.Add(time.Second))
		h.retain("v3", "", "ns-1", since.Add(-time.Second)) // whose it was is not known
		want := []string{"v2", "v1", "v3"}
		if ids := h.listed(); !slices.Equal(ids, want) {
			t.Errorf("listed %v, want %v", ids, want)
		}
		h.restart(true)
		if ids := h.listed(); !slices.Equal(ids, want) {
			t.Errorf("listed %v after a restart, want %v", ids, want)
		}
		all, err := h.node.Retained(h.bounded())
		h.must(err)
		d := all[1]
		r := d.Record
		owner := volume.Owner{Verdict: volume.Confirmed, NamespaceUID: "ns-1", Kind: "PersistentVolumeClaim", Name: "data", UID: "u-v1"}
		if d.Claim != "data" || r.Namespace != "shop" || r.Owner != owner || r.Phase != volume.Retained || r.Pod != "" || r.PodName != "" ||
			!r.Unpublished.Equal(since) || r.Lifespan != time.Hour || !d.Deadline.Equal(since.Add(time.Hour)) || d.Size.Bytes != gib {
			t.Errorf("described as %+v", d)
		}
		if d := all[2]; d.Claim != "" || d.Record.Namespace != "" || d.Record.Owner != (volume.Owner{Verdict: volume.Denied}) {
			t.Errorf("one whose claim is not known is described as %+v", d)
		}

		_, err = h.node.CommentVolume(h.bounded(), fast, "v1", "restored")
		h.must(err)
		h.must(h.remove("v2"))
		if ids := h.listed(); !slices.Equal(ids, []string{"v3"}) {
			t.Errorf("listed %v after one was restored and one deleted", ids)
		}
	})
}

// TestNamespaceWithoutUID: what does not say which namespace it is of belongs to none of that name.
func TestNamespaceWithoutUID(t *testing.T) {
	for name, comment := range map[string]pools.Comment{
		"no UID":       {Claim: "shop/data"},
		"a long UID":   {Claim: "shop/data", NamespaceUID: string(make([]byte, 300))},
		"no namespace": {Claim: "data", NamespaceUID: "ns-1"},
		"odd names":    {Claim: "../etc", NamespaceUID: "ns-1"},
	} {
		comment.Retained = &pools.Retention{Since: time.Now()}
		d := keptOf(local.Record{Name: "v", Comment: comment.String()})
		if d == nil || d.Record.Owner.Verdict != volume.Denied {
			t.Errorf("%s: %+v", name, d)
		}
	}
	if keptOf(local.Record{Name: "v", Comment: "{}"}) != nil || keptOf(local.Record{Name: "s", Of: "v", Comment: `{"retained":{}}`}) != nil {
		t.Error("what is not retained is described")
	}
}

// TestReadRetained: a reading is lent while the volume is retained. It delays neither a claim that gets the volume
// back nor its deletion.
func TestReadRetained(t *testing.T) {
	inWorld(t, func(h *harness) {
		since := time.Now()
		for _, name := range []string{"kept", "back", "going"} {
			h.must(h.create(name, gib))
		}
		read := func(name string) *files.Reading {
			t.Helper()
			r, err := h.node.Read(h.bounded(), volume.ID(name))
			h.must(err)
			t.Cleanup(r.Close)
			return r
		}
		refuse := func(name string, want error) {
			t.Helper()
			_, err := h.node.Read(h.bounded(), volume.ID(name))
			h.want(err, want, "read "+name)
		}
		refuse("kept", volume.ErrNotRetained)
		refuse("none", volume.ErrNotFound)
		refuse("../kept", volume.ErrInvalid)
		for _, name := range []string{"kept", "back", "going"} {
			h.retain(name, "shop/data", "ns-1", since)
		}
		kept, back, going := read("kept"), read("back"), read("going")
		if kept.Volume.Claim != "data" {
			t.Errorf("reads %+v", kept.Volume)
		}
		_, err := h.node.CommentVolume(h.bounded(), fast, "back", "restored")
		h.must(err)
		h.want(h.lost(back), volume.ErrNotRetained, "a claim has it")
		h.must(h.stage("back"))
		h.must(h.unstage("back"))
		h.must(h.remove("going"))
		h.want(h.lost(going), volume.ErrGone, "it was deleted")
		refuse("back", volume.ErrNotRetained)
		refuse("going", volume.ErrNotFound)
		synctest.Wait()
		if kept.Lost.Err() != nil {
			t.Errorf("a reading of another volume was lost: %v", context.Cause(kept.Lost))
		}
		second := read("kept")
		kept.Close()
		kept.Close()
		synctest.Wait()
		if second.Lost.Err() != nil {
			t.Error("the end of one reading ended another")
		}
		back.Close()
		going.Close()
		second.Close()
	})
}

// TestReadWhenTheDiskGoes: readers are told, and the disk is given back once they have gone.
func TestReadWhenTheDiskGoes(t *testing.T) {
	inWorld(t, func(h *harness) {
		h.must(h.create("v", gib))
		h.retain("v", "shop/data", "ns-1", time.Now())
		r, err := h.node.Read(h.bounded(), "v")
		h.must(err)
		h.locked(func() { h.disks["/fast"].away = true })
		h.pass(time.Minute)
		h.want(h.lost(r), volume.ErrUnavailable, "its disk is away")
		if ids := h.listed(); !slices.Equal(ids, []string{"v"}) {
			t.Errorf("listed %v while the disk is away", ids)
		}
		_, err = h.node.Read(h.bounded(), "v")
		h.want(err, volume.ErrUnavailable, "read while the disk is away")
		r.Close()
		h.locked(func() { h.disks["/fast"].away = false })
		h.pass(time.Minute)
		r, err = h.node.Read(h.bounded(), "v")
		h.must(err)
		go func() { // the daemon stops, and tells the reader
			<-r.Lost.Done()
			r.Close()
		}()
	})
}

// TestReaderThatLeaves: what it asked for is given back, whenever the disk answers.
func TestReaderThatLeaves(t *testing.T) {
	inWorld(t, func(h *harness) {
		h.must(h.create("v", gib))
		h.retain("v", "shop/data", "ns-1", time.Now())
		h.locked(func() { h.disks["/fast"].hangs = true })
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err := h.node.Read(ctx, "v"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("read of a disk that hangs: %v", err)
		}
		gone, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := h.node.Read(gone, "v"); !errors.Is(err, context.Canceled) {
			t.Errorf("read by a caller that has left: %v", err)
		}
		h.locked(func() { h.disks["/fast"].hangs = false })
		h.pass(time.Minute)
		r, err := h.node.Read(h.bounded(), "v")
		h.must(err)
		r.Close() // the daemon's stop waits for all that are lent
	})
}
