package pools

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/katbox/katbox/actors/pools/nodes"
	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// TestTwoPoolsOfOneArrayPool: the second one is Incompatible, also after the next start, until the first is gone.
func TestTwoPoolsOfOneArrayPool(t *testing.T) {
	inPools(t, func(h *testPools) {
		h.addClass("fast", nil)
		h.addPool("b", "fast")
	}, func(h *testPools) {
		h.wantState("b", v1alpha1.PoolReady, "", "")
		h.pass(2 * time.Second) // the second one is younger
		h.addPoolAt("a", "fast", "https://b", "token-b")
		h.pass(time.Second)
		h.wantState("a", v1alpha1.PoolIncompatible, v1alpha1.ConditionCompatible, "SamePool")
		h.wantEvents("a Warning Incompatible: pool-00000001 of the array iqn.2011-04.com.zadara:b is that of Pool b already", 1)
		h.stop()
		h.start()
		h.wantState("a", v1alpha1.PoolIncompatible, v1alpha1.ConditionCompatible, "SamePool")
		h.wantState("b", v1alpha1.PoolReady, "", "")
		h.remove(&v1alpha1.Pool{}, "b")
		h.pass(2 * testInterval)
		h.wantState("a", v1alpha1.PoolReady, "", "")
	})
}

// TestTwoPoolsOfOneArrayPoolFromBefore: an earlier version had let both be Ready. The older one stays so.
func TestTwoPoolsOfOneArrayPoolFromBefore(t *testing.T) {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	pool := func(name string, age time.Duration, iqn, id string) *v1alpha1.Pool {
		return &v1alpha1.Pool{
			ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(began.Add(-age))},
			Status:     v1alpha1.PoolStatus{VPSA: v1alpha1.VPSAStatus{IQN: iqn, PoolID: id}},
		}
	}
	all := map[string]*v1alpha1.Pool{}
	for _, p := range []*v1alpha1.Pool{
		pool("a", time.Minute, "one", "pool-1"), pool("b", time.Hour, "one", "pool-1"), pool("c", time.Hour, "one", "pool-1"),
		pool("d", time.Minute, "one", "pool-2"), pool("e", time.Hour, "two", "pool-1"), pool("f", 2*time.Hour, "", ""),
	} {
		all[p.Name] = p
	}
	got := nodes.Places{}
	got.Remember(all)
	if len(got) != 3 || got[poolmessages.Place{IQN: "one", PoolID: "pool-1"}] != "b" ||
		got[poolmessages.Place{IQN: "one", PoolID: "pool-2"}] != "d" || got[poolmessages.Place{IQN: "two", PoolID: "pool-1"}] != "e" {
		t.Errorf("the places are %v", got)
	}
}

// TestNameThatIsTakenIsTold: two strangers' volumes, on two arrays, would have resources of one name.
func TestNameThatIsTakenIsTold(t *testing.T) {
	inPools(t, func(h *testPools) {
		h.addVolume(h.addPool("a", "fast"), "b-c", "", 5, false)
		h.changePool("a", func(p *v1alpha1.Pool) { p.Spec.VPSA.ManageExternal = true })
	}, func(h *testPools) {
		h.pass(testInterval)
		h.addVolume(h.addPool("a-b", "fast"), "c", "", 7, false)
		h.pass(time.Second) // the Pool's status is written
		h.changePool("a-b", func(p *v1alpha1.Pool) { p.Spec.VPSA.ManageExternal = true })
		h.pass(time.Hour)
		if v := get[v1alpha1.PoolVolume](h, "a-b-c"); v.Spec.PoolName != "a" || v.Status.Capacity.Value() != 5<<30 {
			h.Errorf("the volume is %+v", v)
		}
		h.wantEvents("a-b Warning NotImported: volume c (volume-00000001) has no resource, because PoolVolume a-b-c is volume "+
			"volume-00000001 of pool a; rename it on the array", 1)
	})
}

// TestLostAttachmentIsTold, and made again.
func TestLostAttachmentIsTold(t *testing.T) {
	inPools(t, func(h *testPools) {
		a := h.addPool("a", "fast")
		v := h.addVolume(a, "pvc-1", pools.NewComment(testCluster, pools.Claim{}).String(), 5, true)
		node := array.NewServer{Name: "node1-x", IQN: "iqn.2026-11.io.katbox:c:node1", Address: "10.0.0.1"}
		server, err := a.EnsureServer(context.Background(), node)
		if err != nil {
			h.Fatal(err)
		}
		h.add(&v1alpha1.PoolNode{ObjectMeta: metav1.ObjectMeta{Name: "node1"}, Spec: v1alpha1.PoolNodeSpec{
			Addresses: []string{"10.0.0.1"}, IQN: "iqn.2026-11.io.katbox:c:node1",
		}})
		h.add(&v1alpha1.PoolVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "pvc-1", Finalizers: []string{v1alpha1.Finalizer}},
			Spec: v1alpha1.PoolVolumeSpec{ClassName: "fast", PoolName: "a", Size: rules.Quantity(5 << 30), VolumeMode: v1alpha1.Block,
				Protocol: v1alpha1.ISCSI, Management: v1alpha1.Managed},
			Status: v1alpha1.PoolVolumeStatus{State: v1alpha1.VolumeReady, ID: v.ID, Capacity: rules.Quantity(5 << 30)},
		})
		lun := int32(0)
		h.add(&v1alpha1.PoolAttachment{
			ObjectMeta: metav1.ObjectMeta{Name: "pvc-1.node1", Finalizers: []string{v1alpha1.Finalizer}},
			Spec:       v1alpha1.PoolAttachmentSpec{VolumeName: "pvc-1", NodeName: "node1", PoolName: "a", Protocol: v1alpha1.ISCSI},
			Status:     v1alpha1.PoolAttachmentStatus{State: v1alpha1.AttachmentReady, ServerID: server.ID, LUN: &lun, Target: "t", Portal: "p"},
		})
	}, func(h *testPools) {
		h.pass(10 * time.Minute)
		h.wantEvents("pvc-1.node1 Warning AttachmentLost: the array of pool a had detached volume pvc-1 from node node1; it is attached again", 1)
		if a := get[v1alpha1.PoolAttachment](h, "pvc-1.node1"); a.Status.State != v1alpha1.AttachmentLoginPending {
			h.Errorf("the attachment is %+v", a.Status)
		}
	})
}
