package pools

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
)

// wants fails the test where an error is not of a kind, or does not say something.
func (w *world) wants(err, kind error, says string) {
	w.Helper()
	if !errors.Is(err, kind) || !strings.Contains(err.Error(), says) {
		w.Errorf("got the error %v, want one that is %q and says %q", err, kind, says)
	}
}

func TestSameNameIsTheSameVolumeIfItFits(t *testing.T) {
	w := newWorld(t)
	asked := newVolume("pvc-1", 3, true)
	made, err := w.CreateVolume(w.ctx, asked)
	w.must(err)
	for name, test := range map[string]struct {
		change func(*pools.NewVolume)
		fits   bool
	}{
		"the same":          {func(*pools.NewVolume) {}, true},
		"less":              {func(n *pools.NewVolume) { n.Required = gib }, true},
		"more":              {func(n *pools.NewVolume) { n.Required = 4 * gib }, false},
		"less at most":      {func(n *pools.NewVolume) { n.Required, n.Limit = gib, 2*gib }, false},
		"another class":     {func(n *pools.NewVolume) { n.Class = "other" }, false},
		"its class":         {func(n *pools.NewVolume) { n.Class = "class" }, true},
		"a file system":     {func(n *pools.NewVolume) { n.Block = false }, false},
		"a source":          {func(n *pools.NewVolume) { n.Source.Volume = "pvc-0" }, false},
		"the same protocol": {func(n *pools.NewVolume) { n.Protocol = pools.ISCSI }, true},
	} {
		n := asked
		test.change(&n)
		got, err := w.CreateVolume(w.ctx, n)
		if test.fits && (err != nil || got.ID != made.ID || got.Size != 3*gib) || !test.fits && !errors.Is(err, volume.ErrConflict) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestSizeIsWholeGiBWithinTheBounds(t *testing.T) {
	w := newWorld(t)
	for name, test := range map[string]struct {
		required, limit int64
		want            int64
	}{
		"none":           {0, 0, 1},
		"a byte":         {1, 0, 1},
		"a byte more":    {2*gib + 1, 0, 3},
		"limit fits":     {gib + 1, 2 * gib, 2},
		"limit too low":  {gib + 1, 2*gib - 1, 0},
		"limit of a few": {0, 1 << 20, 0},
	} {
		n := pools.NewVolume{Name: "pvc-" + strings.ReplaceAll(name, " ", "-"), Required: test.required, Limit: test.limit}
		v, err := w.CreateVolume(w.ctx, n)
		switch {
		case test.want == 0:
			w.wants(err, pools.ErrOutOfRange, "GiB")
		case err != nil || v.Size != test.want*gib:
			t.Errorf("%s: %d bytes, %v", name, v.Size, err)
		}
	}
}

// TestStrangersVolumeIsLeftAlone: a volume of the name on the array is ours only if its comment says so
// and it is what was asked for.
func TestStrangersVolumeIsLeftAlone(t *testing.T) {
	ours := pools.NewComment("cluster", pools.Claim{Namespace: "ns", Name: "pvc-1"}).String()
	for name, test := range map[string]struct {
		have  array.NewVolume
		adopt bool
	}{
		"no comment":      {array.NewVolume{Size: 2 * array.GiB}, false},
		"another text":    {array.NewVolume{Size: 2 * array.GiB, Comment: "do not touch"}, false},
		"another cluster": {array.NewVolume{Size: 2 * array.GiB, Comment: `{"cluster":"b","pvc":"ns/pvc-1"}`}, false},
		"another claim":   {array.NewVolume{Size: 2 * array.GiB, Comment: `{"cluster":"cluster","pvc":"ns/pvc-2"}`}, false},
		"another size":    {array.NewVolume{Size: 3 * array.GiB, Comment: ours}, false},
		"block":           {array.NewVolume{Size: 2 * array.GiB, Comment: ours, Block: true}, false},
		"ours":            {array.NewVolume{Size: 2 * array.GiB, Comment: ours}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			test.have.Name = "pvc-1"
			before, err := w.mem.CreateVolume(w.ctx, test.have)
			w.must(err)
			_, err = w.CreateVolume(w.ctx, newVolume("pvc-1", 2, false))
			if test.adopt {
				w.must(err)
				w.volumeIs("pvc-1", 2)
				return
			}
			w.wants(err, volume.ErrConflict, before.ID)
			if w.volume("pvc-1") != nil {
				t.Error("a resource was made")
			}
			w.must(w.DeleteVolume(w.ctx, "pvc-1"))
			if after := w.on().named(w, "pvc-1"); after.Comment != before.Comment || after.ID != before.ID {
				t.Errorf("it is %+v, was %+v", after, before)
			}
		})
	}
}

// TestDeletionSparesAnotherVolumeOfTheID: an array that was set up anew gives its IDs out again.
func TestDeletionSparesAnotherVolumeOfTheID(t *testing.T) {
	w := newWorld(t)
	w.create("pvc-1", 1, false)
	id := w.volume("pvc-1").Status.ID
	w.must(w.mem.RenameVolume(w.ctx, id, "precious"))
	w.must(w.mem.CommentVolume(w.ctx, id, ""))
	w.must(w.DeleteVolume(w.ctx, "pvc-1"))
	if w.volume("pvc-1") != nil || w.on().named(w, "precious").ID != id {
		t.Errorf("on the array: %+v", w.on())
	}
}

func TestCopyNeedsItsSourcesClassAndProtocol(t *testing.T) {
	w := newWorld(t)
	w.create("pvc-1", 2, false)
	ask := func(change func(*pools.NewVolume)) (pools.Volume, error) {
		n := pools.NewVolume{Name: "pvc-2", Source: pools.Source{Volume: "pvc-1"}}
		change(&n)
		return w.CreateVolume(w.ctx, n)
	}
	_, err := ask(func(n *pools.NewVolume) { n.Class = "other" })
	w.wants(err, volume.ErrInvalid, "PoolClass")
	_, err = ask(func(n *pools.NewVolume) { n.Block = true })
	w.wants(err, volume.ErrInvalid, "nfs")
	_, err = ask(func(n *pools.NewVolume) { n.Protocol = pools.ISCSI })
	w.wants(err, volume.ErrInvalid, "nfs")
	_, err = ask(func(n *pools.NewVolume) { n.Limit = gib })
	w.wants(err, pools.ErrOutOfRange, "2 GiB")
	_, err = ask(func(n *pools.NewVolume) { n.Source.Volume = "pvc-0" })
	w.wants(err, volume.ErrNotFound, "pvc-0")
	_, err = ask(func(n *pools.NewVolume) { n.Source = pools.Source{Snapshot: "s-0"} })
	w.wants(err, volume.ErrNotFound, "s-0")
	v, err := ask(func(*pools.NewVolume) {})
	w.must(err)
	if v.Size != 2*gib || v.Source.Volume != "pvc-1" {
		t.Errorf("made %+v", v)
	}
	// Its source may go. A repeated call still finds it.
	w.must(w.DeleteVolume(w.ctx, "pvc-1"))
	_, err = ask(func(*pools.NewVolume) {})
	w.must(err)
}

// TestCopyHasItsSourcesFileSystem over iSCSI: nodes refuse a disk that has another one.
func TestCopyHasItsSourcesFileSystem(t *testing.T) {
	w := newWorld(t)
	source := newVolume("pvc-1", 1, false)
	source.Protocol, source.FSType = pools.ISCSI, "xfs"
	_, err := w.CreateVolume(w.ctx, source)
	w.must(err)
	_, err = w.CreateSnapshot(w.ctx, "s", "pvc-1")
	w.must(err)
	for i, from := range []pools.Source{{Volume: "pvc-1"}, {Snapshot: "s"}} {
		ask := func(name, fsType string, block bool) (pools.Volume, error) {
			n := newVolume(fmt.Sprintf("%s-%d", name, i), 1, block)
			n.Source, n.FSType = from, fsType
			if _, err := w.CreateVolume(w.ctx, n); err != nil {
				return pools.Volume{}, err
			}
			return w.CreateVolume(w.ctx, n) // a repeated call is for the same volume
		}
		for name, fsType := range map[string]string{"pvc-silent": "", "pvc-same": "xfs"} {
			if v, err := ask(name, fsType, false); err != nil || v.FSType != "xfs" {
				t.Errorf("from %+v, asked for %q: %+v, %v, want xfs", from, fsType, v, err)
			}
		}
		if v, err := ask("pvc-block", "", true); err != nil || v.FSType != "" {
			t.Errorf("from %+v, as a block device: %+v, %v", from, v, err)
		}
		_, err := ask("pvc-other", "ext4", false)
		w.wants(err, volume.ErrInvalid, "xfs")
		if w.volume(fmt.Sprintf("pvc-other-%d", i)) != nil {
			t.Errorf("from %+v: what is refused was made", from)
		}
	}
	// A device has what its pods have made on it: the one who asks knows.
	fromDevice := newVolume("pvc-device", 1, false)
	fromDevice.Source, fromDevice.FSType, fromDevice.Protocol = pools.Source{Volume: "pvc-block-0"}, "ext4", pools.ISCSI
	if v, err := w.CreateVolume(w.ctx, fromDevice); err != nil || v.FSType != "ext4" {
		t.Errorf("a file system from a device: %+v, %v", v, err)
	}
}

func TestOneNodeAtATimeCannotShareAFileSystemOverISCSI(t *testing.T) {
	w := newWorld(t)
	n := newVolume("pvc-1", 1, false)
	n.Protocol, n.Shared = pools.ISCSI, true
	_, err := w.CreateVolume(w.ctx, n)
	w.wants(err, volume.ErrInvalid, "iscsi")
	n.Shared = false
	v, err := w.CreateVolume(w.ctx, n)
	w.must(err)
	if v.FSType != "ext4" {
		t.Errorf("made %+v", v)
	}
}

func TestVolumeInUseIsNotDeleted(t *testing.T) {
	w := newWorld(t)
	w.must(w.DeleteVolume(w.ctx, "pvc-0"))
	w.create("pvc-1", 1, false)
	_, err := w.Attach(w.ctx, pools.NewAttachment{Volume: "pvc-1", Node: "node2"})
	w.must(err)
	w.wants(w.DeleteVolume(w.ctx, "pvc-1"), pools.ErrInUse, "node2")
	w.must(w.Detach(w.ctx, "pvc-1", "node2"))
	_, err = w.CreateSnapshot(w.ctx, "s", "pvc-1")
	w.must(err)
	w.wants(w.DeleteVolume(w.ctx, "pvc-1"), pools.ErrInUse, "snapshots, such as s")
	if v := w.volume("pvc-1"); v.DeletionTimestamp != nil {
		t.Error("the resource is being deleted")
	}
	w.must(w.DeleteSnapshot(w.ctx, "s"))

	// What only the array knows of.
	server, err := w.mem.EnsureServer(w.ctx, array.NewServer{Name: "a person's", Address: "10.9.9.9"})
	w.must(err)
	_, err = w.mem.Attach(w.ctx, array.NewAttachment{ServerID: server.ID, VolumeID: w.volume("pvc-1").Status.ID, NFS: true})
	w.must(err)
	w.wants(w.repeat(func() error { return w.DeleteVolume(w.ctx, "pvc-1") }), pools.ErrInUse, server.ID)
	w.must(w.mem.Detach(w.ctx, w.volume("pvc-1").Status.ID, server.ID))
	w.until("the deletion goes on alone", func() bool { return w.volume("pvc-1") == nil })
	if on := w.on(); len(on.volumes) > 0 {
		t.Errorf("on the array: %+v", on.volumes)
	}
}

// TestResourcesDeletedByHandWaitForWhatUsesThem: kubectl delete goes the same way as a call.
func TestResourcesDeletedByHandWaitForWhatUsesThem(t *testing.T) {
	w := newWorld(t)
	w.create("pvc-1", 1, false)
	_, err := w.Attach(w.ctx, pools.NewAttachment{Volume: "pvc-1", Node: "node1"})
	w.must(err)
	w.must(w.api.Delete(w.ctx, w.volume("pvc-1")))
	w.until("the resource says why it waits", func() bool {
		return w.volume("pvc-1").Status.State == v1alpha1.VolumeDeleting && strings.Contains(w.volume("pvc-1").Status.Message, "node1")
	})
	_, err = w.Attach(w.ctx, pools.NewAttachment{Volume: "pvc-1", Node: "node2", Shared: true})
	w.wants(err, volume.ErrBusy, "being deleted")
	if len(w.on().volumes) != 1 {
		t.Fatal("the volume is gone")
	}
	w.must(w.api.Delete(w.ctx, w.attachment("pvc-1", "node1")))
	w.until("both are gone", func() bool { return w.volume("pvc-1") == nil })
	w.nothingLeft()
}

func TestExternalVolumeStaysOnTheArray(t *testing.T) {
	w := newWorld(t)
	w.create("pvc-1", 1, false)
	v := w.volume("pvc-1")
	v.Spec.Management = v1alpha1.External
	w.must(w.api.Update(w.ctx, v))
	_, err := w.CreateVolume(w.ctx, newVolume("pvc-1", 1, false))
	w.wants(err, volume.ErrConflict, "not made by Katbox")
	w.must(w.DeleteVolume(w.ctx, "pvc-1"))
	if w.volume("pvc-1") != nil || len(w.on().volumes) != 1 {
		t.Errorf("on the array: %+v", w.on().volumes)
	}
}

func TestGrowthWithinTheBounds(t *testing.T) {
	w := newWorld(t)
	w.create("pvc-1", 2, false)
	_, err := w.GrowVolume(w.ctx, "pvc-0", gib, 0)
	w.wants(err, volume.ErrNotFound, "pvc-0")
	_, err = w.GrowVolume(w.ctx, "pvc-1", 2*gib+1, 3*gib-1)
	w.wants(err, pools.ErrOutOfRange, "3 GiB")
	_, err = w.GrowVolume(w.ctx, "pvc-1", 2000*gib, 0)
	w.wants(err, volume.ErrNoSpace, "pool")
	if v := w.volume("pvc-1"); v.Spec.Size.Value() != 2*gib {
		t.Errorf("the resource asks for %s, and would get it later", v.Spec.Size.String())
	}
	w.steps.arm(-1, noFault)
	v, err := w.GrowVolume(w.ctx, "pvc-1", gib, 0)
	w.must(err)
	if names := w.steps.disarm(); v.Size != 2*gib || len(names) > 0 {
		t.Errorf("a volume that is large enough: %+v, %q", v, names)
	}
}

func TestSnapshotIsOfOneVolume(t *testing.T) {
	w := newWorld(t)
	w.create("pvc-1", 1, false)
	w.create("pvc-2", 1, false)
	long := strings.Repeat("snapshot ", 14)
	s, err := w.CreateSnapshot(w.ctx, long, "pvc-1")
	w.must(err)
	again, err := w.CreateSnapshot(w.ctx, long, "pvc-1")
	w.must(err)
	if again != s || s.ID != pools.SnapshotName(long) || w.snapshot(s.ID).Spec.RequestName != long {
		t.Errorf("%+v, then %+v", s, again)
	}
	_, err = w.CreateSnapshot(w.ctx, long, "pvc-2")
	w.wants(err, volume.ErrConflict, "pvc-1")
	_, err = w.CreateSnapshot(w.ctx, "other", "pvc-0")
	w.wants(err, volume.ErrNotFound, "pvc-0")
	w.must(w.DeleteSnapshot(w.ctx, "unknown"))
}

// TestWhatTakesTimeIsFinishedAlone: an array may say that something is there and cannot be used yet.
func TestWhatTakesTimeIsFinishedAlone(t *testing.T) {
	w := newWorld(t)
	w.create("pvc-2", 1, false)
	w.mem.slow = true
	_, err := w.CreateVolume(w.ctx, newVolume("pvc-1", 1, false))
	w.wants(err, volume.ErrBusy, "not usable yet")
	if v := w.volume("pvc-1"); v.Status.State != v1alpha1.VolumeProvisioning || v.Status.ID == "" {
		t.Errorf("meanwhile: %+v", v.Status)
	}
	s, err := w.CreateSnapshot(w.ctx, "s", "pvc-2")
	w.must(err)
	if s.Ready {
		t.Error("the snapshot is ready")
	}
	_, err = w.CreateVolume(w.ctx, pools.NewVolume{Name: "pvc-3", Source: pools.Source{Snapshot: "s"}})
	w.wants(err, volume.ErrBusy, "not Ready")
	w.mem.finish()
	w.until("both are Ready", func() bool {
		return w.volume("pvc-1").Status.State == v1alpha1.VolumeReady && w.snapshot("s").Status.State == v1alpha1.SnapshotReady
	})
	if s, err := w.CreateSnapshot(w.ctx, "s", "pvc-2"); err != nil || !s.Ready {
		t.Errorf("then: %+v, %v", s, err)
	}
}

// finish makes everything usable.
func (a *memArray) finish() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, v := range a.volumes {
		v.Usable = true
		a.volumes[id] = v
	}
	for id, s := range a.snapshots {
		s.Usable = true
		a.snapshots[id] = s
	}
	a.slow = false
}

// deaf says that it detaches, and does not.
type deaf struct{ *memArray }

func (deaf) Detach(context.Context, string, string) error { return nil }

// TestVolumeMadeByHandTakesNoStrangersVolume: the name was not looked at before the resource was made.
func TestVolumeMadeByHandTakesNoStrangersVolume(t *testing.T) {
	ours := pools.NewComment("cluster", pools.Claim{}).String()
	for name, test := range map[string]struct {
		comment string
		adopt   bool
	}{"no comment": {"", false}, "another text": {"finance", false}, "ours": {ours, true}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			before, err := w.mem.CreateVolume(w.ctx, array.NewVolume{Name: "data", PoolID: "pool-00000001", Size: array.GiB, Comment: test.comment})
			w.must(err)
			byHand := func(name string) {
				w.must(w.api.Create(w.ctx, &v1alpha1.PoolVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.PoolVolumeSpec{
					ClassName: "class", PoolName: "pool", Size: resource.MustParse("1Gi"), Protocol: v1alpha1.NFS, VolumeMode: v1alpha1.Filesystem,
					Management: v1alpha1.Managed,
				}}))
			}
			byHand("data")
			byHand("free")
			state := func(name string, want v1alpha1.VolumeState) {
				w.until(name+" is "+string(want), func() bool { return w.volume(name).Status.State == want })
			}
			state("free", v1alpha1.VolumeReady)
			if test.adopt {
				state("data", v1alpha1.VolumeReady)
				return
			}
			state("data", v1alpha1.VolumeFailed)
			if says := w.volume("data").Status.Message; !strings.Contains(says, before.ID) {
				t.Errorf("the message is %q", says)
			}
			var refused error
			w.until("nothing else changes the volume", func() bool {
				refused = w.DeleteVolume(w.ctx, "data")
				return !errors.Is(refused, volume.ErrBusy)
			})
			w.wants(refused, volume.ErrUncertain, before.ID)
			w.must(w.api.Delete(w.ctx, w.volume("data")))
			w.must(w.repeat(func() error { return w.DeleteVolume(w.ctx, "data") }))
			if after := w.on().named(w, "data"); after.ID != before.ID || after.Comment != before.Comment {
				t.Errorf("it is %+v, was %+v", after, before)
			}
		})
	}
}
