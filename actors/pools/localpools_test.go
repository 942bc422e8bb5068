package pools

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/fakepools"
)

const (
	disk1 = "11111111-1111-4111-8111-111111111111"
	disk2 = "22222222-2222-4222-8222-222222222222"
	disk3 = "33333333-3333-4333-8333-333333333333"
)

// poolOf is the name of the Pool of a disk in the class nvme.
func poolOf(uuid string) string { return pools.LocalPoolName("nvme", uuid) }

// connects lets a node tell which pools it has.
func (h *testPools) connects(node string, n *fakepools.Node) {
	h.Helper()
	all, err := n.Pools(context.Background())
	if err != nil {
		h.Fatal(err)
	}
	h.controller.NodePools(node, "1.0", n, all)
	synctest.Wait()
}

// nodeWith is a node with disks of 100 GiB in the class nvme.
func nodeWith(uuids ...string) *fakepools.Node {
	n := &fakepools.Node{}
	for _, uuid := range uuids {
		n.Add(fakepools.NewDisk(local.Pool{UUID: uuid, Class: "nvme", Backend: local.Image, HardLimit: true, Block: true, Copies: true}))
	}
	return n
}

// inLocal runs a test with a controller and the class nvme.
func inLocal(t *testing.T, test func(h *testPools)) {
	t.Helper()
	inPools(t, func(h *testPools) { h.addClass("nvme", nil) }, test)
}

// local is the controller for pools on nodes.
func (h *testPools) local() *Controller { return h.controller.OfKind(pools.KindLocal) }

// newLocal describes a volume of some GiB near disks.
func newLocal(name string, gib int64, near ...[]string) pools.NewVolume {
	return pools.NewVolume{
		Name: name, Class: "nvme", Required: gib << 30, Near: near, Claim: pools.Claim{Namespace: "ns", Name: name},
	}
}

func TestNodesPoolIsMadeAndBecomesReady(t *testing.T) {
	inLocal(t, func(h *testPools) {
		n := nodeWith(disk1)
		h.connects("n1", n)
		name := poolOf(disk1)
		h.wantState(name, v1alpha1.PoolReady, v1alpha1.ConditionReachable, "Reachable")
		p := h.pool(name)
		if p.Spec.ClassName != "nvme" || p.Spec.Overcommit != "1" || p.Spec.Local.UUID != disk1 || !rules.HasFinalizer(p) {
			h.Errorf("made %+v", p.Spec)
		}
		want := v1alpha1.LocalStatus{
			UUID: disk1, Node: "n1", KeyHash: p.Status.Local.KeyHash, Path: "/mnt/11111111", Backend: "image", FSType: "xfs", HardLimit: true,
		}
		if p.Status.Local != want || p.Status.VPSA != (v1alpha1.VPSAStatus{}) || p.Status.Version != "1.0" {
			h.Errorf("its status is %+v", p.Status)
		}
		if got := p.Status.Capacity.Total.Value(); got != 100<<30 {
			h.Errorf("it has %d bytes", got)
		}
		h.wantEvents("Created: node n1 has it", 1)
		h.connects("n1", n) // it tells again
		h.wantEvents("Created", 1)
	})
}

// TestPoolsOfNodesThatConnectFirst: nodes may tell of their pools before all resources are known.
func TestPoolsOfNodesThatConnectFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &testPools{T: t, kube: newPatchingAPI(), events: &eventLog{}, states: &stateLog{of: map[string][]string{}}}
		h.add(&v1alpha1.Pool{ObjectMeta: metav1.ObjectMeta{Name: "mine"}, Spec: v1alpha1.PoolSpec{
			ClassName: "nvme", Local: &v1alpha1.LocalPool{UUID: disk1},
		}})
		h.startTold(func(c *Controller) {
			n := nodeWith(disk1, disk2)
			all, _ := n.Pools(context.Background())
			c.NodePools("n1", "1.0", n, all)
		})
		h.pass(testInterval)
		h.wantState("mine", v1alpha1.PoolReady, "", "")
		h.wantState(poolOf(disk2), v1alpha1.PoolReady, "", "")
		if h.exists(&v1alpha1.Pool{}, poolOf(disk1)) {
			h.Error("a second Pool of a disk was made")
		}
		h.stop()
	})
}

// TestRestartIsNoReasonForAlarm: after a start of the controller its nodes need a moment to connect.
func TestRestartIsNoReasonForAlarm(t *testing.T) {
	inLocal(t, func(h *testPools) {
		here, away := nodeWith(disk1), nodeWith(disk2)
		h.connects("n1", here)
		h.connects("n2", away)
		h.stop()
		h.start()
		h.pass(15 * time.Second)
		if _, err := h.local().CreateVolume(h.Context(), newLocal("v", 1, []string{disk1})); !errors.Is(err, volume.ErrUnavailable) {
			h.Errorf("a volume on a node that has not connected yet: %v", err)
		}
		h.connects("n1", here)
		if _, err := h.local().CreateVolume(h.Context(), newLocal("v", 1, []string{disk1})); err != nil {
			h.Error(err)
		}
		h.wantEvents("Unreachable", 0)
		h.pass(connectBound)
		h.wantState(poolOf(disk1), v1alpha1.PoolReady, "", "")
		h.wantState(poolOf(disk2), v1alpha1.PoolUnreachable, v1alpha1.ConditionReachable, "NodeAway")
		h.wantEvents("Unreachable", 1)
	})
}

// TestVolumeGoesElsewhereWhenItsNodeIsGone: Kubernetes chooses another node after this error alone.
func TestVolumeGoesElsewhereWhenItsNodeIsGone(t *testing.T) {
	inLocal(t, func(h *testPools) {
		one, two := nodeWith(disk1), nodeWith(disk2)
		h.connects("n1", one)
		h.connects("n2", two)
		gone := []string{"Pools", "Volume", "Volumes", "Snapshots", "CreateVolume"}
		one.Fail(fakepools.Method(volume.ErrUnavailable, gone...)) // the pool is still taken for reachable
		_, err := h.local().CreateVolume(h.Context(), newLocal("v", 1, []string{disk1}))
		if !errors.Is(err, volume.ErrNoSpace) || errors.Is(err, volume.ErrUnavailable) {
			h.Errorf("on a node that is gone: %v", err)
		}
		h.pass(time.Second)
		h.wantState(poolOf(disk1), v1alpha1.PoolUnreachable, v1alpha1.ConditionReachable, "NodeAway")
		if v, err := h.local().CreateVolume(h.Context(), newLocal("v", 1, []string{disk1}, []string{disk2})); err != nil || v.On != disk2 {
			h.Errorf("made %+v, %v", v, err)
		}
	})
}

func TestNodeAndDiskAway(t *testing.T) {
	inLocal(t, func(h *testPools) {
		n := nodeWith(disk1)
		h.connects("n1", n)
		name := poolOf(disk1)
		if _, err := h.local().CreateVolume(h.Context(), newLocal("v", 1)); err != nil {
			h.Fatal(err)
		}
		h.controller.NodeAway("n1", &fakepools.Node{}) // another connection of it
		h.pass(time.Minute)
		h.wantState(name, v1alpha1.PoolReady, "", "")

		n.Fail(fakepools.Method(volume.ErrUnavailable, "Pools", "Volume", "Volumes"))
		h.controller.NodeAway("n1", n)
		h.pass(time.Second)
		h.wantState(name, v1alpha1.PoolReady, "", "") // it may be back in a moment
		h.pass(testInterval)
		h.wantState(name, v1alpha1.PoolUnreachable, v1alpha1.ConditionReachable, "NodeAway")
		if s := h.pool(name).Status.Local; s.Node != "n1" || s.Path == "" {
			h.Errorf("where it was is forgotten: %+v", s)
		}
		if v := get[v1alpha1.PoolVolume](h, "v"); v.Status.State != v1alpha1.VolumeReady {
			h.Errorf("the volume is %s", v.Status.State)
		}
		if _, err := h.local().CreateVolume(h.Context(), newLocal("w", 1)); !errors.Is(err, volume.ErrNoSpace) {
			h.Errorf("a volume on a node that is away: %v", err)
		}
		n.Fail(nil)
		h.connects("n1", n)
		h.wantState(name, v1alpha1.PoolReady, "", "")

		n.Change(disk1, func(p *local.Pool) { p.Failed = "no such file or directory" })
		h.connects("n1", n)
		h.pass(testInterval)
		h.wantState(name, v1alpha1.PoolUnreachable, v1alpha1.ConditionReachable, "DiskAway")
		d := n.Remove(disk1)
		h.connects("n1", n)
		h.pass(testInterval)
		h.wantState(name, v1alpha1.PoolUnreachable, v1alpha1.ConditionReachable, "DiskAway")
		n.Add(d)
		n.Change(disk1, func(p *local.Pool) { p.Failed = "" })
		h.connects("n1", n)
		h.wantState(name, v1alpha1.PoolReady, "", "")
	})
}

// TestStrictClassWantsAHardLimit, also of pools that it has already.
func TestStrictClassWantsAHardLimit(t *testing.T) {
	inLocal(t, func(h *testPools) {
		n := &fakepools.Node{}
		n.Add(fakepools.NewDisk(local.Pool{UUID: disk1, Class: "nvme", Backend: local.ProjectQuota}))
		h.connects("n1", n)
		h.wantState(poolOf(disk1), v1alpha1.PoolReady, "", "")
		enforce := func(to v1alpha1.Enforcement) {
			c := h.class("nvme")
			c.Spec.Enforcement = to
			c.Generation++
			if err := h.kube.Update(h.Context(), c); err != nil {
				h.Fatal(err)
			}
			synctest.Wait()
		}
		enforce(v1alpha1.Strict)
		h.wantState(poolOf(disk1), v1alpha1.PoolIncompatible, v1alpha1.ConditionCompatible, "NoHardLimit")
		if _, err := h.local().CreateVolume(h.Context(), newLocal("v", 1)); !errors.Is(err, volume.ErrNoSpace) ||
			!strings.Contains(err.Error(), "Strict") {
			h.Errorf("a volume there: %v", err)
		}
		enforce(v1alpha1.BestEffort)
		h.wantState(poolOf(disk1), v1alpha1.PoolReady, "", "")
	})
}

// TestNoHardLimitOfBtrfs, whatever a daemon of an earlier version says.
func TestNoHardLimitOfBtrfs(t *testing.T) {
	inLocal(t, func(h *testPools) {
		n := &fakepools.Node{}
		n.Add(fakepools.NewDisk(local.Pool{UUID: disk1, Class: "nvme", Backend: local.Btrfs, HardLimit: true, Copies: true}))
		c := h.class("nvme")
		c.Spec.Enforcement = v1alpha1.Strict
		c.Generation++
		if err := h.kube.Update(h.Context(), c); err != nil {
			h.Fatal(err)
		}
		h.connects("n1", n)
		h.wantState(poolOf(disk1), v1alpha1.PoolIncompatible, v1alpha1.ConditionCompatible, "NoHardLimit")
		if h.pool(poolOf(disk1)).Status.Local.HardLimit {
			h.Error("its status promises a hard limit")
		}
		_, err := h.local().CreateVolume(h.Context(), newLocal("v", 1))
		if !errors.Is(err, volume.ErrNoSpace) || !strings.Contains(err.Error(), "use the backend image, or") {
			h.Errorf("a volume there: %v", err)
		}
	})
}

func TestDiskMovesToAnotherNode(t *testing.T) {
	inLocal(t, func(h *testPools) {
		for _, node := range []string{"n1", "n2"} {
			core := coreNode(node)
			if node == "n1" {
				core.Labels = map[string]string{pools.TopologyKey(disk1): "here", pools.TopologyKey(disk2): "here", "other": "label"}
			}
			h.add(core)
		}
		one, two := nodeWith(disk1, disk2), nodeWith()
		h.connects("n1", one)
		h.connects("n2", two)
		if _, err := h.local().CreateVolume(h.Context(), newLocal("v", 1, []string{disk1})); err != nil {
			h.Fatal(err)
		}
		two.Add(one.Remove(disk1))
		h.connects("n1", one)
		if labels := h.labels("n1"); labels[pools.TopologyKey(disk1)] == "" {
			h.Error("the label of a disk that no node has was removed")
		}
		h.connects("n2", two)
		h.wantState(poolOf(disk1), v1alpha1.PoolReady, "", "")
		if s := h.pool(poolOf(disk1)).Status.Local; s.Node != "n2" {
			h.Errorf("the disk is on %+v", s)
		}
		labels := h.labels("n1")
		if labels[pools.TopologyKey(disk1)] != "" || labels[pools.TopologyKey(disk2)] == "" || labels["other"] == "" {
			h.Errorf("the labels of the node that had it are %v", labels)
		}
		if err := h.local().DeleteVolume(h.Context(), "v"); err != nil {
			h.Error(err)
		}
		if on, _ := two.On(disk1); len(on) > 0 {
			h.Errorf("left on the disk: %+v", on)
		}
	})
}

func (h *testPools) labels(node string) map[string]string {
	h.Helper()
	o := coreNode(node)
	if err := h.kube.Get(context.Background(), client.ObjectKey{Name: node}, o); err != nil {
		h.Fatal(err)
	}
	return o.Labels
}

// TestTwoNodesTellOfOneDisk: the one that had it keeps it while it is connected, and the other one does not get it
// when the first one is away for a moment.
func TestTwoNodesTellOfOneDisk(t *testing.T) {
	inLocal(t, func(h *testPools) {
		one, copied := nodeWith(disk1), nodeWith(disk1)
		h.connects("n1", one)
		if _, err := h.local().CreateVolume(h.Context(), newLocal("v", 1)); err != nil {
			h.Fatal(err)
		}
		for range 2 {
			h.connects("n2", copied)
		}
		h.wantEvents("SameDisk", 1)
		h.controller.NodeAway("n1", one)
		h.connects("n2", copied)
		h.pass(2 * testInterval)
		h.wantState(poolOf(disk1), v1alpha1.PoolUnreachable, v1alpha1.ConditionReachable, "NodeAway")
		h.connects("n1", one)
		h.wantState(poolOf(disk1), v1alpha1.PoolReady, "", "")
		if v := get[v1alpha1.PoolVolume](h, "v"); v.Status.State != v1alpha1.VolumeReady {
			h.Errorf("the volume is %s: %s", v.Status.State, v.Status.Message)
		}
		if s := h.pool(poolOf(disk1)).Status.Local; s.Node != "n1" {
			h.Errorf("the disk is on %s", s.Node)
		}
	})
}

// TestChangedClass: a pool with volumes keeps its class.
func TestChangedClass(t *testing.T) {
	inLocal(t, func(h *testPools) {
		h.addClass("slow", nil)
		n := nodeWith(disk1)
		h.connects("n1", n)
		if _, err := h.local().CreateVolume(h.Context(), newLocal("v", 1)); err != nil {
			h.Fatal(err)
		}
		n.Change(disk1, func(p *local.Pool) { p.Class = "slow" })
		for range 3 {
			h.connects("n1", n)
			h.pass(testInterval)
		}
		if p := h.pool(poolOf(disk1)); p.Spec.ClassName != "nvme" {
			h.Errorf("a pool with volumes is in class %s", p.Spec.ClassName)
		}
		h.wantEvents("OtherClass", 1)
		if err := h.local().DeleteVolume(h.Context(), "v"); err != nil {
			h.Fatal(err)
		}
		h.pass(time.Second)
		if p := h.pool(poolOf(disk1)); p.Spec.ClassName != "slow" {
			h.Errorf("an empty pool is in class %s", p.Spec.ClassName)
		}
		h.wantEvents("ClassChanged", 1)
		if h.exists(&v1alpha1.Pool{}, pools.LocalPoolName("slow", disk1)) {
			h.Error("a second Pool was made")
		}
	})
}

// TestDeletedPoolIsMadeAnew once its volumes are gone, as long as a node has the disk.
func TestDeletedPoolIsMadeAnew(t *testing.T) {
	inLocal(t, func(h *testPools) {
		n := nodeWith(disk1)
		h.connects("n1", n)
		if _, err := h.local().CreateVolume(h.Context(), newLocal("v", 1)); err != nil {
			h.Fatal(err)
		}
		first := h.pool(poolOf(disk1)).UID
		h.remove(&v1alpha1.Pool{}, poolOf(disk1))
		h.pass(testInterval)
		h.wantState(poolOf(disk1), v1alpha1.PoolDeleting, "", "")
		h.wantEvents("DeleteBlocked", 1)
		if err := h.local().DeleteVolume(h.Context(), "v"); err != nil {
			h.Fatal(err)
		}
		h.pass(testInterval)
		h.wantState(poolOf(disk1), v1alpha1.PoolReady, "", "")
		if h.pool(poolOf(disk1)).UID == first {
			h.Error("the Pool was not deleted")
		}
		h.controller.NodeAway("n1", n)
		h.remove(&v1alpha1.Pool{}, poolOf(disk1))
		h.pass(2 * testInterval)
		if h.exists(&v1alpha1.Pool{}, poolOf(disk1)) {
			h.Error("a Pool was made of a disk that no node has")
		}
	})
}

// TestLostPoolIsImported: volumes and snapshots on a disk get their resources again.
func TestLostPoolIsImported(t *testing.T) {
	inLocal(t, func(h *testPools) {
		n := nodeWith(disk1)
		comment := pools.NewComment(testCluster, pools.Claim{Namespace: "ns", Name: "data"})
		comment.FSType = "xfs"
		n.Put(disk1, local.Volume{Name: "mine", Size: 3 << 30, Comment: comment.String(), Ready: true})
		of := func(cluster string) string { return pools.NewComment(cluster, pools.Claim{}).String() }
		n.Put(disk1, local.Volume{Name: "block", Size: 1 << 30, Block: true, Comment: of(testCluster), Ready: true})
		n.Put(disk1, local.Volume{Name: "theirs", Size: 1 << 30, Comment: of("other"), Ready: true})
		if _, err := n.CreateSnapshot(h.Context(), disk1, "snapshot-00000000-0000-4000-8000-000000000001", "mine"); err != nil {
			h.Fatal(err)
		}
		h.connects("n1", n)
		v := get[v1alpha1.PoolVolume](h, "mine")
		if v.Spec.Protocol != v1alpha1.Local || v.Spec.FSType != "xfs" || v.Spec.VolumeMode != v1alpha1.Filesystem ||
			v.Spec.ClaimRef.Name != "data" || v.Status.State != v1alpha1.VolumeReady || v.Status.Capacity.Value() != 3<<30 {
			h.Errorf("imported as %+v %+v", v.Spec, v.Status)
		}
		if b := get[v1alpha1.PoolVolume](h, "block"); b.Spec.Protocol != v1alpha1.Local || b.Spec.VolumeMode != v1alpha1.Block {
			h.Errorf("imported as %+v", b.Spec)
		}
		if h.exists(&v1alpha1.PoolVolume{}, "theirs") {
			h.Error("another cluster's volume was imported")
		}
		if c := h.pool(poolOf(disk1)).Status.Counters; c.Volumes != 2 || c.Snapshots != 1 {
			h.Errorf("the pool has %+v", c)
		}
		if got, err := h.local().Volume(h.Context(), "mine"); err != nil || got.On != disk1 || got.Protocol != pools.Local {
			h.Errorf("the volume is %+v, %v", got, err)
		}
	})
}

func TestVolumesGoWhereTheyAreNear(t *testing.T) {
	inLocal(t, func(h *testPools) {
		one, two := nodeWith(disk1, disk2), nodeWith(disk3)
		h.connects("n1", one)
		h.connects("n2", two)
		for _, tc := range []struct {
			name string
			gib  int64
			near [][]string
			on   string // empty: none takes it
		}{
			{"v1", 1, [][]string{{disk3}, {disk1, disk2}}, disk3},
			{"v2", 70, [][]string{{disk1, disk2}}, disk1},
			{"v3", 70, [][]string{{disk1, disk2}}, disk2},
			{"v4", 70, [][]string{{disk1, disk2}}, ""},
			{"v5", 70, [][]string{{disk1, disk2}, {disk3}}, disk3},
			{"v6", 19, nil, disk1},
			{"v7", 1, [][]string{{"44444444-4444-4444-8444-444444444444"}}, ""},
		} {
			v, err := h.local().CreateVolume(h.Context(), newLocal(tc.name, tc.gib, tc.near...))
			switch {
			case tc.on == "" && !errors.Is(err, volume.ErrNoSpace):
				h.Errorf("%s: %v, want no space", tc.name, err)
			case tc.on != "" && (err != nil || v.On != tc.on || v.Protocol != pools.Local):
				h.Errorf("%s is %+v, %v; want on %s", tc.name, v, err, tc.on)
			}
			again, err := h.local().CreateVolume(h.Context(), newLocal(tc.name, tc.gib, tc.near...))
			if tc.on != "" && (err != nil || again.On != v.On) {
				h.Errorf("asked again, %s is %+v, %v", tc.name, again, err)
			}
		}
		if h.exists(&v1alpha1.PoolVolume{}, "v4") {
			h.Error("what nothing takes has a resource")
		}
	})
}

// TestRoomIsPromisedOnce: what is made counts in full at once, and what is deleted within seconds.
func TestRoomIsPromisedOnce(t *testing.T) {
	inLocal(t, func(h *testPools) {
		n := nodeWith(disk1)
		h.connects("n1", n)
		room := func(want int64, what string) {
			h.Helper()
			got, err := h.local().Capacity(h.Context(), pools.Wanted{Class: "nvme", Near: [][]string{{disk1}}})
			if err != nil || got != (pools.Capacity{Available: want << 30, Largest: want << 30}) {
				h.Errorf("%s there is room for %+v, %v; want %d GiB", what, got, err, want)
			}
		}
		room(90, "at first")
		if _, err := h.local().CreateVolume(h.Context(), newLocal("a", 60)); err != nil {
			h.Fatal(err)
		}
		room(30, "after one")
		if _, err := h.local().CreateVolume(h.Context(), newLocal("b", 31)); !errors.Is(err, volume.ErrNoSpace) {
			h.Errorf("a volume without room: %v", err)
		}
		h.pass(2 * testInterval)
		room(30, "after a probe")
		if err := h.local().DeleteVolume(h.Context(), "a"); err != nil {
			h.Fatal(err)
		}
		h.pass(soonLook + time.Second)
		room(90, "after its end")
		n.Change(disk1, func(p *local.Pool) { p.Free = 15 << 30 }) // others use the disk
		h.pass(2 * testInterval)
		room(5, "on a disk that others use")
		h.wantState(poolOf(disk1), v1alpha1.PoolReady, v1alpha1.ConditionCapacityHealthy, "ModeAlert")
		if _, err := h.local().CreateVolume(h.Context(), newLocal("c", 5)); err != nil {
			h.Error(err)
		}
	})
}

func TestWhatABackendCannotDo(t *testing.T) {
	inLocal(t, func(h *testPools) {
		n := &fakepools.Node{}
		n.Add(fakepools.NewDisk(local.Pool{UUID: disk1, Class: "nvme", Backend: local.ProjectQuota, FSType: "ext4"}))
		h.connects("n1", n)
		made := newLocal("v", 1)
		made.FSType = "xfs"
		if v, err := h.local().CreateVolume(h.Context(), made); err != nil || v.FSType != "" {
			h.Errorf("a directory is %+v, %v", v, err)
		}
		block := newLocal("b", 1)
		block.Block = true
		if _, err := h.local().CreateVolume(h.Context(), block); !errors.Is(err, volume.ErrNoSpace) ||
			!strings.Contains(err.Error(), "no block devices") {
			h.Errorf("a block device: %v", err)
		}
		clone := newLocal("c", 1)
		clone.Source.Volume = "v"
		if _, err := h.local().CreateVolume(h.Context(), clone); !errors.Is(err, volume.ErrNoSpace) ||
			!strings.Contains(err.Error(), "no copies") {
			h.Errorf("a clone: %v", err)
		}
		if _, err := h.local().CreateSnapshot(h.Context(), "s", "v"); !errors.Is(err, volume.ErrInvalid) ||
			!strings.Contains(err.Error(), "no snapshots") {
			h.Errorf("a snapshot: %v", err)
		}
		if h.exists(&v1alpha1.PoolSnapshot{}, "s") {
			h.Error("a snapshot that cannot be has a resource")
		}
	})
}

func TestImagesHaveAFileSystem(t *testing.T) {
	inLocal(t, func(h *testPools) {
		n := nodeWith(disk1)
		h.connects("n1", n)
		ask := func(name, fsType string, block bool, from pools.Source) pools.Volume {
			h.Helper()
			v := newLocal(name, 1)
			v.FSType, v.Block, v.Source = fsType, block, from
			for range 2 {
				if _, err := h.local().CreateVolume(h.Context(), v); err != nil {
					h.Fatalf("%s: %v", name, err)
				}
			}
			got, err := h.local().CreateVolume(h.Context(), v)
			if err != nil {
				h.Fatal(err)
			}
			return got
		}
		if v := ask("plain", "", false, pools.Source{}); v.FSType != "ext4" || v.Block {
			h.Errorf("made %+v", v)
		}
		if v := ask("xfs", "xfs", false, pools.Source{}); v.FSType != "xfs" {
			h.Errorf("made %+v", v)
		}
		if v := ask("block", "", true, pools.Source{}); v.FSType != "" || !v.Block {
			h.Errorf("made %+v", v)
		}
		if v := ask("copy", "", false, pools.Source{Volume: "xfs"}); v.FSType != "xfs" {
			h.Errorf("the copy is %+v", v)
		}
		if v := ask("same-copy", "xfs", false, pools.Source{Volume: "xfs"}); v.FSType != "xfs" {
			h.Errorf("the copy is %+v", v)
		}
		odd := newLocal("odd", 1)
		odd.FSType, odd.Source.Volume = "ext4", "xfs"
		if _, err := h.local().CreateVolume(h.Context(), odd); !errors.Is(err, volume.ErrInvalid) || !strings.Contains(err.Error(), "xfs") {
			h.Errorf("a copy with another file system: %v", err)
		}
		if s, err := h.local().CreateSnapshot(h.Context(), "s", "block"); err != nil || !s.Ready {
			h.Errorf("the snapshot is %+v, %v", s, err)
		}
		if v := ask("restored", "", true, pools.Source{Snapshot: "s"}); !v.Block || v.On != disk1 {
			h.Errorf("made from a snapshot: %+v", v)
		}
		other := newLocal("xfs", 1)
		if _, err := h.local().CreateVolume(h.Context(), other); !errors.Is(err, volume.ErrConflict) {
			h.Errorf("with another file system: %v", err)
		}
		wrong := newLocal("wrong", 1)
		wrong.Source.Volume = "block"
		if _, err := h.local().CreateVolume(h.Context(), wrong); !errors.Is(err, volume.ErrInvalid) {
			h.Errorf("a file system from a block device: %v", err)
		}
		volumes, _ := n.On(disk1)
		for _, v := range volumes {
			if (v.FSType == "") != v.Block || pools.ParseComment(v.Comment).Cluster != testCluster {
				h.Errorf("on the disk: %+v", v)
			}
		}
		if v, err := h.local().GrowVolume(h.Context(), "xfs", 1<<30+1, 0); err != nil || v.Size != 1<<30+1<<20 || v.On != disk1 {
			h.Errorf("grew to %+v, %v", v, err)
		}
	})
}

// TestEachKindSeesItsOwn: the drivers share classes and names, and nothing else.
func TestEachKindSeesItsOwn(t *testing.T) {
	inPools(t, func(h *testPools) {
		h.addClass("nvme", func(c *v1alpha1.PoolClassSpec) { c.Default = true })
		h.addPool("a", "nvme")
	}, func(h *testPools) {
		h.pass(testInterval)
		h.connects("n1", nodeWith(disk1))
		ctx, remote, here := h.Context(), h.controller.OfKind(pools.KindArray), h.local()
		for name, on := range map[string]*Controller{"far": remote, "near": here} {
			if _, err := on.CreateVolume(ctx, newLocal(name, 1)); err != nil {
				h.Fatal(err)
			}
			if _, err := on.CreateSnapshot(ctx, "snap-"+name, name); err != nil {
				h.Fatal(err)
			}
		}
		for own, sides := range map[string][2]*Controller{"far": {remote, here}, "near": {here, remote}} {
			mine, other := sides[0], sides[1]
			all, _, err := mine.Volumes(ctx, pools.Page{})
			if err != nil || len(all) != 1 || all[0].ID != own {
				h.Errorf("the volumes are %+v, %v; want %s", all, err, own)
			}
			snaps, _, err := mine.Snapshots(ctx, pools.SnapshotSelection{}, pools.Page{})
			if err != nil || len(snaps) != 1 || snaps[0].Volume != own {
				h.Errorf("the snapshots are %+v, %v; want of %s", snaps, err, own)
			}
			for what, err := range map[string]error{
				"find": second(other.Volume(ctx, own)), "grow": second(other.GrowVolume(ctx, own, 2<<30, 0)),
				"snapshot": second(other.CreateSnapshot(ctx, "s", own)),
				"attach":   second(other.Attach(ctx, pools.NewAttachment{Volume: own, Node: "n1"})),
			} {
				if !errors.Is(err, volume.ErrNotFound) {
					h.Errorf("%s of %s by the other driver: %v", what, own, err)
				}
			}
			copied := newLocal("copy", 1)
			copied.Source.Snapshot = "snap-" + own
			if _, err := other.CreateVolume(ctx, copied); !errors.Is(err, volume.ErrNotFound) {
				h.Errorf("a copy by the other driver: %v", err)
			}
			if err := errors.Join(other.DeleteSnapshot(ctx, "snap-"+own), other.DeleteVolume(ctx, own)); err != nil {
				h.Errorf("deletion by the other driver: %v", err)
			}
			if _, err := mine.Volume(ctx, own); err != nil {
				h.Errorf("after the deletion by the other driver: %v", err)
			}
			if _, err := other.CreateVolume(ctx, newLocal(own, 1)); !errors.Is(err, volume.ErrConflict) {
				h.Errorf("the same name by the other driver: %v", err)
			}
		}
		for _, of := range []struct {
			on   *Controller
			want int64
		}{{remote, 898}, {here, 88}} {
			got, err := of.on.Capacity(ctx, pools.Wanted{})
			if err != nil || got.Available>>30 < of.want || got.Available>>30 > of.want+2 {
				h.Errorf("the capacity is %+v, %v", got, err)
			}
		}
	})
}

func second[T any](_ T, err error) error { return err }

// TestLostAnswersOfANode: nothing is made twice, and nothing is left.
func TestLostAnswersOfANode(t *testing.T) {
	for _, method := range []string{"CreateVolume", "CommentVolume", "GrowVolume", "CreateSnapshot", "DeleteSnapshot", "DeleteVolume"} {
		t.Run(method, func(t *testing.T) {
			inLocal(t, func(h *testPools) {
				n, ctx := nodeWith(disk1), h.Context()
				h.connects("n1", n)
				lost := 0
				n.Lose(func(c fakepools.Call) error {
					if c.Method == method && lost < 2 {
						lost++
						return fmt.Errorf("%w: no answer", volume.ErrUncertain)
					}
					return nil
				})
				try := func(f func() error) {
					h.Helper()
					for range 50 {
						err := f()
						if err == nil {
							return
						}
						if !repeatable(err) {
							h.Fatal(err)
						}
						h.pass(time.Second)
					}
					h.Fatal("never")
				}
				try(func() error { return second(h.local().CreateVolume(ctx, newLocal("v", 1))) })
				try(func() error { return second(h.local().GrowVolume(ctx, "v", 2<<30, 0)) })
				try(func() error { return second(h.local().CreateSnapshot(ctx, "s", "v")) })
				volumes, snapshots := n.On(disk1)
				if len(volumes) != 1 || volumes[0].Size != 2<<30 || len(snapshots) != 1 {
					h.Errorf("on the disk: %+v, %+v", volumes, snapshots)
				}
				try(func() error { return h.local().DeleteSnapshot(ctx, "s") })
				try(func() error { return h.local().DeleteVolume(ctx, "v") })
				volumes, snapshots = n.On(disk1)
				if len(volumes)+len(snapshots) > 0 || h.exists(&v1alpha1.PoolVolume{}, "v") {
					h.Errorf("left on the disk: %+v, %+v", volumes, snapshots)
				}
			})
		})
	}
}

// TestVolumeThatANodeUsesIsNotDeleted: what the node stages stays.
func TestVolumeThatANodeUsesIsNotDeleted(t *testing.T) {
	inLocal(t, func(h *testPools) {
		n := nodeWith(disk1)
		h.connects("n1", n)
		if _, err := h.local().CreateVolume(h.Context(), newLocal("v", 1)); err != nil {
			h.Fatal(err)
		}
		n.Use(disk1, "v", true)
		if err := h.local().DeleteVolume(h.Context(), "v"); !errors.Is(err, pools.ErrInUse) {
			h.Errorf("a staged volume was deleted: %v", err)
		}
		n.Use(disk1, "v", false)
		h.pass(10 * time.Minute)
		if on, _ := n.On(disk1); len(on) > 0 || h.exists(&v1alpha1.PoolVolume{}, "v") {
			h.Errorf("the deletion did not go on: %+v", on)
		}
	})
}

// TestBadPoolsOfNodesAreNotTaken.
func TestBadPoolsOfNodesAreNotTaken(t *testing.T) {
	inLocal(t, func(h *testPools) {
		h.controller.NodePools("n1", "1.0", &fakepools.Node{}, []local.Pool{{UUID: "../x", Class: "nvme"}, {UUID: disk1, Class: "No Name"}})
		h.pass(testInterval)
		var all v1alpha1.PoolList
		if err := h.kube.List(h.Context(), &all); err != nil || len(all.Items) > 0 {
			h.Errorf("made %+v, %v", all.Items, err)
		}
	})
}
