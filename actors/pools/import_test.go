package pools

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

func metaIn(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

// addVolume puts a volume of some GiB on an array.
func (h *testPools) addVolume(a *testArray, name, comment string, size array.Size, block bool) array.Volume {
	h.Helper()
	wanted := array.NewVolume{Name: name, PoolID: "pool-00000001", Comment: comment, Size: size * array.GiB, Block: block}
	v, err := a.CreateVolume(context.Background(), wanted)
	if err != nil {
		h.Fatal(err)
	}
	return v
}

// addOurs puts a volume on an array that this cluster has made for the claim shop/data.
func (h *testPools) addOurs(a *testArray, name string) array.Volume {
	h.Helper()
	return h.addVolume(a, name, pools.NewComment(testCluster, pools.Claim{Namespace: "shop", Name: "data"}).String(), 10, false)
}

// TestExistingVolumesAndSnapshotsAreImported: among 10,000 volumes of strangers are three of ours, whose
// resources were lost.
func TestExistingVolumesAndSnapshotsAreImported(t *testing.T) {
	inPools(t, func(h *testPools) {
		a := h.addPool("a", "fast")
		a.room = 1 << 40
		for i := range 10_000 {
			id := fmt.Sprintf("volume-1%07x", i)
			a.volumes[id] = array.Volume{ID: id, Name: fmt.Sprint("stranger-", i), PoolID: "pool-00000001", Size: array.GiB, Usable: true}
		}
		nas := h.addOurs(a, "pvc-nas")
		h.addVolume(a, "pvc-raw", pools.NewComment(testCluster, pools.Claim{}).String(), 5, true)
		comment := pools.NewComment(testCluster, pools.Claim{})
		comment.FSType = "xfs"
		h.addVolume(a, "pvc-xfs", comment.String(), 6, true)
		h.addVolume(a, "pvc-of-another-cluster", pools.NewComment("other", pools.Claim{}).String(), 5, false)
		for _, name := range []string{"snapshot-00000000-1111-4222-8333-444444444444", "by-hand"} {
			taken := array.NewSnapshot{Name: name, VolumeID: nas.ID}
			if _, err := a.CreateSnapshot(context.Background(), taken); err != nil {
				h.Fatal(err)
			}
		}
	}, func(h *testPools) {
		h.wantState("a", v1alpha1.PoolReady, v1alpha1.ConditionImported, "Imported")
		h.wantEvents("Imported: imported 3 volumes and 1 snapshots again, and 0 volumes", 1)
		nas := get[v1alpha1.PoolVolume](h, "pvc-nas")
		if nas.Spec.Management != v1alpha1.Managed || nas.Spec.PoolName != "a" || nas.Spec.ClassName != "fast" ||
			nas.Spec.Protocol != v1alpha1.NFS || nas.Spec.VolumeMode != v1alpha1.Filesystem || nas.Spec.Size.Value() != 10<<30 ||
			nas.Spec.ClaimRef == nil || nas.Spec.ClaimRef.Name != "data" ||
			nas.Labels[v1alpha1.LabelNamespace] != "shop" || nas.Labels[v1alpha1.LabelPool] != "a" || len(nas.Finalizers) != 1 ||
			nas.Status.State != v1alpha1.VolumeReady || nas.Status.ID == "" || nas.Status.ExportPath == "" || nas.Status.Capacity.Value() != 10<<30 {
			h.Errorf("imported as %+v", nas)
		}
		if raw := get[v1alpha1.PoolVolume](h, "pvc-raw"); raw.Spec.VolumeMode != v1alpha1.Block || raw.Spec.Protocol != v1alpha1.ISCSI {
			h.Errorf("imported as %+v", raw.Spec)
		}
		xfs := get[v1alpha1.PoolVolume](h, "pvc-xfs").Spec
		if xfs.VolumeMode != v1alpha1.Filesystem || xfs.Protocol != v1alpha1.ISCSI || xfs.FSType != "xfs" {
			h.Errorf("imported as %+v", xfs)
		}
		s := get[v1alpha1.PoolSnapshot](h, "snapshot-00000000-1111-4222-8333-444444444444")
		if s.Spec.VolumeName != "pvc-nas" || s.Status.State != v1alpha1.SnapshotReady || s.Status.Size.Value() != 10<<30 {
			h.Errorf("imported as %+v", s)
		}
		h.pass(2 * testInterval)
		if c := h.pool("a").Status.Counters; c != (v1alpha1.PoolCounters{Volumes: 3, Snapshots: 1}) {
			h.Errorf("the pool has %+v", c)
		}
		h.pass(6 * time.Minute)
		h.wantEvents("Imported: imported", 1)
	})
}

// TestVolumesOfOthersAreImportedWhenThePoolSaysSo, under names that no claim has.
func TestVolumesOfOthersAreImportedWhenThePoolSaysSo(t *testing.T) {
	inPools(t, func(h *testPools) {
		a := h.addPool("a", "fast")
		v := h.addVolume(a, "Data_1", "", 5, true)
		h.addVolume(a, "plain", "made by hand", 5, false)
		taken := array.NewSnapshot{Name: "nightly", VolumeID: v.ID}
		if _, err := a.CreateSnapshot(context.Background(), taken); err != nil {
			h.Fatal(err)
		}
		a.volumes["volume-ffffffff"] = array.Volume{ID: "volume-ffffffff", Name: "in-another-pool", PoolID: "pool-00000009", Usable: true}
	}, func(h *testPools) {
		h.pass(testInterval)
		if h.exists(&v1alpha1.PoolVolume{}, "a-plain") {
			h.Error("a stranger's volume was imported")
		}
		h.changePool("a", func(p *v1alpha1.Pool) { p.Spec.VPSA.ManageExternal = true })
		h.pass(testInterval)
		plain := get[v1alpha1.PoolVolume](h, "a-plain")
		if plain.Spec.Management != v1alpha1.External || plain.Status.State != v1alpha1.VolumeReady {
			h.Errorf("imported as %+v", plain)
		}
		if !h.exists(&v1alpha1.PoolVolume{}, pools.ExternalName("a", "Data_1")) || h.exists(&v1alpha1.PoolVolume{}, "a-in-another-pool") {
			h.Error("the wrong volumes were imported")
		}
		if c := h.pool("a").Status.Counters; c != (v1alpha1.PoolCounters{External: 2, Snapshots: 1}) {
			h.Errorf("the pool has %+v", c)
		}
	})
}

// TestPoolTakesNoVolumesBeforeItIsImported: a lost resource could lead to a second volume of its name.
func TestPoolTakesNoVolumesBeforeItIsImported(t *testing.T) {
	var hold chan struct{}
	inPools(t, func(h *testPools) {
		hold = make(chan struct{})
		h.addClass("fast", nil)
		h.addPool("a", "fast").holdsList = hold
	}, func(h *testPools) {
		h.wantState("a", v1alpha1.PoolImporting, "", "")
		if _, err := h.use("a"); !errors.Is(err, volume.ErrUnavailable) {
			h.Errorf("the array of a pool that is not imported: %v", err)
		}
		_, err := ask(h, &poolmessages.ReservePool{Volume: "v", Class: "fast", Bytes: 1 << 30})
		if !errors.Is(err, volume.ErrUnavailable) || errors.Is(err, volume.ErrNoSpace) {
			h.Errorf("room in a pool that is not imported: %v", err)
		}
		close(hold)
		h.pass(0)
		if _, err := h.use("a"); err != nil {
			h.Error(err)
		}
		if got, err := ask(h, &poolmessages.ReservePool{Volume: "v", Class: "fast", Bytes: 1 << 30}); err != nil || got.Pool != "a" {
			h.Errorf("room in an imported pool: %+v, %v", got, err)
		}
	})
}

// TestFailedImportIsTriedAgain.
func TestFailedImportIsTriedAgain(t *testing.T) {
	inPools(t, func(h *testPools) {
		h.addOurs(h.addPool("a", "fast"), "pvc-1")
		h.kube.refusing(func(key kubeKey) error {
			if key.kind == poolmessages.PoolVolumeKind {
				return errNotReached
			}
			return nil
		})
	}, func(h *testPools) {
		h.wantState("a", v1alpha1.PoolImporting, v1alpha1.ConditionImported, "ImportFailed")
		h.kube.refusing(nil)
		h.pass(2 * testInterval)
		h.wantState("a", v1alpha1.PoolReady, "", "")
	})
}

// TestVolumesThatVanishFail: the message says why, and they are Ready again when they are back.
func TestVolumesThatVanishFail(t *testing.T) {
	inPools(t, func(h *testPools) { h.addOurs(h.addPool("a", "fast"), "pvc-1") }, func(h *testPools) {
		a := h.arrays["https://a"]
		id := get[v1alpha1.PoolVolume](h, "pvc-1").Status.ID
		a.memArray.mu.Lock()
		v := a.volumes[id]
		delete(a.volumes, id)
		a.memArray.mu.Unlock()
		h.pass(6 * time.Minute)
		if s := get[v1alpha1.PoolVolume](h, "pvc-1").Status; s.State != v1alpha1.VolumeFailed ||
			s.Message != rules.MissingMessage(pools.KindArray) {
			h.Errorf("a volume that vanished: %+v", s)
		}
		h.wantEvents("a Warning Imported: imported 0 volumes and 0 snapshots again, and 0 volumes and snapshots of others; 1 are missing", 1)
		v.Size = 20 * array.GiB
		a.memArray.mu.Lock()
		a.volumes[id] = v
		a.memArray.mu.Unlock()
		h.pass(6 * time.Minute)
		if s := get[v1alpha1.PoolVolume](h, "pvc-1").Status; s.State != v1alpha1.VolumeReady || s.Capacity.Value() != 20<<30 {
			h.Errorf("a volume that came back: %+v", s)
		}
	})
}

// TestImportTrustsNoComment: others can write comments on the array, too.
func TestImportTrustsNoComment(t *testing.T) {
	inPools(t, func(h *testPools) {
		h.addVolume(h.addPool("a", "fast"), "pvc-1", `{"cluster":"cluster-uid","pvc":"A B/c","fs":"../../x"}`, 1, true)
	}, func(h *testPools) {
		h.wantState("a", v1alpha1.PoolReady, "", "")
		v := get[v1alpha1.PoolVolume](h, "pvc-1")
		if v.Spec.ClaimRef != nil || v.Spec.FSType != "" || v.Spec.VolumeMode != v1alpha1.Filesystem || v.Labels[v1alpha1.LabelNamespace] != "" {
			h.Errorf("imported as %+v", v)
		}
	})
}

// TestImportLeavesAnotherPoolsResourceAlone that has the same name.
func TestImportLeavesAnotherPoolsResourceAlone(t *testing.T) {
	inPools(t, func(h *testPools) {
		h.add(&v1alpha1.PoolVolume{
			ObjectMeta: metaProtected("a-b-c"), Spec: v1alpha1.PoolVolumeSpec{ClassName: "fast", PoolName: "a-b", Management: v1alpha1.External},
		})
		h.addVolume(h.addPool("a", "fast"), "b-c", "", 1, true)
		h.changePool("a", func(p *v1alpha1.Pool) { p.Spec.VPSA.ManageExternal = true })
	}, func(h *testPools) {
		h.wantState("a", v1alpha1.PoolReady, "", "")
		if v := get[v1alpha1.PoolVolume](h, "a-b-c"); v.Status.ID != "" {
			h.Errorf("the resource of pool %s stands for volume %s of pool a", v.Spec.PoolName, v.Status.ID)
		}
	})
}
