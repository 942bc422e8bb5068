package onarray

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/fakepools"
)

const uuid = "11111111-1111-4111-8111-111111111111"

func newPool(p local.Pool) (*fakepools.Node, array.Array) {
	p.UUID = uuid
	n := &fakepools.Node{}
	n.Add(fakepools.NewDisk(p))
	return n, New("n1", "1.2", uuid, n)
}

func TestHealth(t *testing.T) {
	n, a := newPool(local.Pool{Path: "/mnt/a", Backend: local.Image, HardLimit: true, Block: true, Copies: true, Total: 10, Free: 7})
	all, err := n.Pools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h, err := a.Health(t.Context())
	want := array.Disk{
		Node: "n1", Path: "/mnt/a", Backend: "image", FSType: "xfs", KeyHash: all[0].Key.Hash(), HardLimit: true, Block: true, Images: true,
		Copies: true,
	}
	if err != nil || h.Version != "1.2" || h.IQN != uuid || h.Disk != want || len(h.Pools) != 1 ||
		h.Pools[0] != (array.Pool{ID: uuid, Name: "/mnt/a", Total: 10, Available: 7}) {
		t.Errorf("the health is %+v, %v", h, err)
	}
	for _, tc := range []struct {
		what string
		do   func()
		want error
	}{
		{"the disk is away", func() { n.Change(uuid, func(p *local.Pool) { p.Failed = "no such device" }) }, array.ErrDiskAway},
		{"the disk is another node's", func() { n.Remove(uuid) }, array.ErrDiskAway},
		{"the node is away", func() { n.Fail(fakepools.Method(volume.ErrUnavailable, "Pools")) }, array.ErrNodeAway},
	} {
		tc.do()
		if _, err := a.Health(t.Context()); !errors.Is(err, tc.want) || !errors.Is(err, array.ErrUnreachable) {
			t.Errorf("%s: %v, want %v", tc.what, err, tc.want)
		}
	}
}

func TestVolumesAndSnapshots(t *testing.T) {
	n, a := newPool(local.Pool{Copies: true, Total: 1 << 40})
	ctx := t.Context()
	for i := range pageSize + 1 {
		n.Put(uuid, local.Volume{Name: fmt.Sprintf("other-%05d", i), Size: 1 << 20, Ready: true})
	}
	made, err := a.CreateVolume(ctx, array.NewVolume{Name: "v", PoolID: uuid, Comment: "c", Size: 5 * array.MiB})
	if err != nil || made.ID != "v" || made.Group != "v" || made.PoolID != uuid || made.Comment != "c" ||
		made.Size != 5*array.MiB || !made.Usable {
		t.Fatalf("made %+v, %v", made, err)
	}
	s, err := a.CreateSnapshot(ctx, array.NewSnapshot{Name: "s", VolumeID: "v"})
	if err != nil || s.ID != "s" || s.VolumeID != "v" || s.Group != "v" || s.Size != 5*array.MiB {
		t.Fatalf("took %+v, %v", s, err)
	}
	if _, err := a.CreateSnapshot(ctx, array.NewSnapshot{Name: "s", VolumeID: "other-00001"}); !errors.Is(err, array.ErrExists) {
		t.Errorf("a snapshot of another volume: %v", err)
	}
	if _, err := a.GrowVolume(ctx, "v", 8*array.MiB); err != nil {
		t.Error(err)
	}
	for from, size := range map[string]array.Size{"": 8 * array.MiB, "s": 5 * array.MiB} {
		if v, err := a.CloneVolume(ctx, array.NewClone{Name: "copy" + from, Group: "v", SnapshotID: from}); err != nil || v.Size != size {
			t.Errorf("the copy of snapshot %q is %+v, %v", from, v, err)
		}
	}
	count := 0
	if err := a.Volumes(ctx, func(page []array.Volume) error { count += len(page); return nil }); err != nil || count != pageSize+4 {
		t.Errorf("%d volumes, %v", count, err)
	}
	if err := a.DeleteVolume(ctx, "v"); !errors.Is(err, array.ErrAttached) {
		t.Errorf("a volume with a snapshot was deleted: %v", err)
	}
	for range 2 {
		if err := errors.Join(a.DeleteSnapshot(ctx, "s"), a.DeleteVolume(ctx, "v")); err != nil {
			t.Error(err)
		}
	}
}

func TestErrors(t *testing.T) {
	for from, want := range map[error]error{
		volume.ErrNotFound: array.ErrNotFound, volume.ErrUncertain: array.ErrUncertain, volume.ErrUnavailable: array.ErrUnreachable,
		volume.ErrNoSpace: array.ErrNoRoom, volume.ErrConflict: array.ErrExists, volume.ErrBusy: array.ErrBusy,
		volume.Invalid("x", "is wrong"): array.ErrRefused, pools.ErrInUse: array.ErrAttached, pools.ErrOutOfRange: array.ErrRefused,
		context.DeadlineExceeded: array.ErrUncertain, context.Canceled: array.ErrUncertain,
	} {
		n, a := newPool(local.Pool{})
		n.Fail(fakepools.Method(from, "GrowVolume"))
		if _, err := a.GrowVolume(t.Context(), "v", 1); !errors.Is(err, want) || !errors.Is(err, from) {
			t.Errorf("%v became %v, want %v", from, err, want)
		}
	}
	n, a := newPool(local.Pool{})
	n.Fail(fakepools.Method(context.DeadlineExceeded, "Volume"))
	if _, err := a.Volume(t.Context(), "v"); !errors.Is(err, array.ErrTimeout) {
		t.Errorf("a question without an answer: %v", err)
	}
}

func TestNothingIsAttached(t *testing.T) {
	_, a := newPool(local.Pool{})
	ctx := t.Context()
	if _, err := a.CreateVolume(ctx, array.NewVolume{Name: "v", Size: array.MiB}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.EnsureServer(ctx, array.NewServer{Name: "n"}); !errors.Is(err, array.ErrRefused) {
		t.Errorf("a server was made: %v", err)
	}
	if _, err := a.Attach(ctx, array.NewAttachment{VolumeID: "v"}); !errors.Is(err, array.ErrRefused) {
		t.Errorf("a volume was attached: %v", err)
	}
	if on, err := a.Attachments(ctx, "v"); err != nil || len(on) > 0 {
		t.Errorf("attached: %+v, %v", on, err)
	}
	if err := errors.Join(a.Detach(ctx, "v", "n"), a.DeleteServer(ctx, "n")); err != nil {
		t.Error(err)
	}
}

// TestEarlierDaemonsPromiseTooMuch: what they call a hard limit is none on btrfs, except of images that are not copied.
func TestEarlierDaemonsPromiseTooMuch(t *testing.T) {
	for _, tc := range []struct {
		p    local.Pool
		want bool
	}{
		{local.Pool{Backend: local.Btrfs, FSType: "btrfs", Copies: true}, false},
		{local.Pool{Backend: local.Image, FSType: "btrfs", Copies: true}, false},
		{local.Pool{Backend: local.Image, FSType: "btrfs"}, true},
		{local.Pool{Backend: local.Image, FSType: "xfs", Copies: true}, true},
	} {
		tc.p.HardLimit = true
		_, a := newPool(tc.p)
		if h, err := a.Health(t.Context()); err != nil || h.Disk.HardLimit != tc.want {
			t.Errorf("%s on %s, copies %t: hard %t, %v", tc.p.Backend, tc.p.FSType, tc.p.Copies, h.Disk.HardLimit, err)
		}
	}
}
