package fakepools

import (
	"errors"
	"testing"

	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/volume"
)

const uuid = "11111111-1111-4111-8111-111111111111"

func TestNode(t *testing.T) {
	n, ctx := &Node{}, t.Context()
	n.Add(NewDisk(local.Pool{UUID: uuid, Copies: true, Total: 10 << 20}))
	for range 2 {
		v, err := n.CreateVolume(ctx, uuid, local.NewVolume{Name: "v", Size: 4 << 20, Comment: "c"})
		if err != nil || v.Size != 4<<20 || !v.Ready {
			t.Fatalf("made %+v, %v", v, err)
		}
		if _, err := n.CreateSnapshot(ctx, uuid, "s", "v"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := n.CreateVolume(ctx, uuid, local.NewVolume{Name: "w", Size: 7 << 20}); !errors.Is(err, volume.ErrNoSpace) {
		t.Errorf("a volume without room: %v", err)
	}
	if v, err := n.GrowVolume(ctx, uuid, "v", 5<<20); err != nil || v.Size != 5<<20 || !v.HasSnapshots {
		t.Errorf("grew to %+v, %v", v, err)
	}
	if n.DeleteVolume(ctx, uuid, "v") == nil {
		t.Error("a volume with a snapshot was deleted")
	}
	n.Lose(Method(volume.ErrUnavailable, "DeleteSnapshot"))
	if err := n.DeleteSnapshot(ctx, uuid, "s"); !errors.Is(err, volume.ErrUnavailable) {
		t.Errorf("the answer was not lost: %v", err)
	}
	if err := n.DeleteVolume(ctx, uuid, "v"); err != nil {
		t.Error(err)
	}
	n.Change(uuid, func(p *local.Pool) { p.Failed = "no such device" })
	if _, err := n.Volumes(ctx, uuid, "", 0); !errors.Is(err, volume.ErrUnavailable) {
		t.Errorf("volumes of a disk that is away: %v", err)
	}
	if all, err := n.Pools(ctx); err != nil || len(all) != 1 || all[0].Failed == "" || n.Called("Pools") != 1 {
		t.Errorf("the pools are %+v, %v", all, err)
	}
}
