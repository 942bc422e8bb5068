package pools

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/testing/fakepools"
)

// claiming is a node that tells of a disk with a key, or with none: all else may be read in names and labels.
func claiming(uuid string, key local.Key) *fakepools.Node {
	n := nodeWith(uuid)
	n.Change(uuid, func(p *local.Pool) { p.Key = key })
	return n
}

// withVolume makes a volume on the pool of n1's disk.
func (h *testPools) withVolume(one *fakepools.Node) {
	h.Helper()
	h.connects("n1", one)
	if _, err := h.local().CreateVolume(h.Context(), newLocal("v", 1)); err != nil {
		h.Fatal(err)
	}
}

// comesBack lets n1 connect: all that is on its disk is there, and can be deleted.
func (h *testPools) comesBack(one *fakepools.Node) {
	h.Helper()
	h.connects("n1", one)
	h.wantState(poolOf(disk1), v1alpha1.PoolReady, "", "")
	if s := h.pool(poolOf(disk1)).Status.Local; s.Node != "n1" {
		h.Errorf("the disk is on %s", s.Node)
	}
	if v := get[v1alpha1.PoolVolume](h, "v"); v.Status.State != v1alpha1.VolumeReady {
		h.Errorf("the volume is %s: %s", v.Status.State, v.Status.Message)
	}
	if err := h.local().DeleteVolume(h.Context(), "v"); err != nil {
		h.Error(err)
	}
	if on, _ := one.On(disk1); len(on) > 0 {
		h.Errorf("left on the disk: %+v", on)
	}
}

// TestNodeCannotTakeAnothersPool: while its node is away, and right after a start of the controller, when no node has
// connected yet.
func TestNodeCannotTakeAnothersPool(t *testing.T) {
	for name, tc := range map[string]struct {
		key              local.Key // of the node that claims the disk
		restart, keyless bool
	}{
		"another key":                    {key: local.NewKey()},
		"no key":                         {},
		"another key, after a restart":   {key: local.NewKey(), restart: true},
		"no key, after a restart":        {restart: true},
		"a disk without a key":           {key: local.NewKey(), keyless: true},
		"the same, after a restart":      {key: local.NewKey(), keyless: true, restart: true},
		"neither has one, after restart": {keyless: true, restart: true},
	} {
		t.Run(name, func(t *testing.T) {
			inLocal(t, func(h *testPools) {
				one := nodeWith(disk1)
				if tc.keyless {
					one = claiming(disk1, "")
				}
				h.withVolume(one)
				h.controller.NodeAway("n1", one)
				if tc.restart {
					h.stop()
					h.start()
				}
				two := claiming(disk1, tc.key)
				h.connects("n2", two)
				h.pass(connectBound + testInterval)
				h.wantState(poolOf(disk1), v1alpha1.PoolUnreachable, v1alpha1.ConditionReachable, "NodeAway")
				h.wantEvents("WrongKey: node n2 tells of a pool at /mnt/11111111", 1)
				for _, method := range []string{"Volumes", "Volume", "Snapshots", "DeleteVolume"} {
					if two.Called(method) > 0 {
						h.Errorf("the node that does not have the disk was asked for %s", method)
					}
				}
				for range 2 {
					h.connects("n2", two)
				}
				h.wantEvents("WrongKey", 1)
				h.comesBack(one)
			})
		})
	}
}

// TestEarlyNodeIsJudgedByThePools: a node may be the first to connect, before the controller knows any Pool.
func TestEarlyNodeIsJudgedByThePools(t *testing.T) {
	inLocal(t, func(h *testPools) {
		one, two := nodeWith(disk1), claiming(disk1, local.NewKey())
		h.withVolume(one)
		h.stop()
		h.startTold(func(c *Controller) {
			all, _ := two.Pools(context.Background())
			c.NodePools("n2", "1.0", two, all)
			gone := nodeWith(disk3)
			all, _ = gone.Pools(context.Background())
			c.NodePools("n3", "1.0", gone, all)
			c.NodeAway("n3", gone)
		})
		h.pass(connectBound + testInterval)
		h.wantEvents("WrongKey: node n2", 1)
		if s := h.pool(poolOf(disk1)).Status.Local; s.Node != "n1" {
			h.Errorf("the disk is on %s", s.Node)
		}
		if h.exists(&v1alpha1.Pool{}, poolOf(disk3)) {
			h.Error("a Pool was made for a node that has left before")
		}
		h.comesBack(one)
	})
}

// TestDiskMovesWithItsKey, also when its former node and the controller have been away.
func TestDiskMovesWithItsKey(t *testing.T) {
	inLocal(t, func(h *testPools) {
		one := nodeWith(disk1)
		h.withVolume(one)
		h.stop()
		h.start()
		two := &fakepools.Node{}
		two.Add(one.Remove(disk1))
		h.connects("n2", two)
		h.wantState(poolOf(disk1), v1alpha1.PoolReady, "", "")
		if s := h.pool(poolOf(disk1)).Status.Local; s.Node != "n2" {
			h.Errorf("the disk is on %s", s.Node)
		}
		// Its former node misses it, which is no claim.
		lost := claiming(disk1, "")
		lost.Change(disk1, func(p *local.Pool) { p.Failed = "no such file or directory" })
		h.connects("n1", lost)
		h.wantEvents("WrongKey", 0)
		h.wantEvents("SameDisk", 0)
		// With the name alone it does not get it back.
		h.connects("n1", claiming(disk1, ""))
		h.wantEvents("WrongKey: node n1", 1)
		if err := h.local().DeleteVolume(h.Context(), "v"); err != nil {
			h.Error(err)
		}
		if on, _ := two.On(disk1); len(on) > 0 {
			h.Errorf("left on the disk: %+v", on)
		}
	})
}

// TestDiskGetsItsKeyLater: a pool of an earlier version gets a key with its node's next daemon; only that node may say
// which.
func TestDiskGetsItsKeyLater(t *testing.T) {
	inLocal(t, func(h *testPools) {
		one, key := claiming(disk1, ""), local.NewKey()
		h.withVolume(one)
		if hash := h.pool(poolOf(disk1)).Status.Local.KeyHash; hash != "" {
			h.Errorf("a disk without a key has the hash %s", hash)
		}
		one.Change(disk1, func(p *local.Pool) { p.Key = key })
		h.stop()
		h.start()
		h.connects("n1", one)
		hash := h.pool(poolOf(disk1)).Status.Local.KeyHash
		if hash != key.Hash() || strings.Contains(hash, string(key)) {
			h.Errorf("its hash is %q", hash)
		}
		// A daemon of an earlier version, with the same disk.
		h.connects("n1", claiming(disk1, ""))
		h.pass(testInterval)
		if got := h.pool(poolOf(disk1)).Status.Local.KeyHash; got != hash {
			h.Errorf("its hash is %q, and was %q", got, hash)
		}
	})
}

// TestPersonSaysWhichNodeHasADisk, where its pool.json has lost its key.
func TestPersonSaysWhichNodeHasADisk(t *testing.T) {
	inLocal(t, func(h *testPools) {
		one, former := nodeWith(disk1), local.Key("")
		one.Change(disk1, func(p *local.Pool) { former = p.Key })
		h.withVolume(one)
		h.controller.NodeAway("n1", one)
		two := &fakepools.Node{}
		two.Add(one.Remove(disk1))
		two.Change(disk1, func(p *local.Pool) { p.Key = local.NewKey() })
		h.connects("n2", two)
		h.pass(testInterval)
		h.wantState(poolOf(disk1), v1alpha1.PoolUnreachable, v1alpha1.ConditionReachable, "NodeAway")
		h.changePool(poolOf(disk1), func(p *v1alpha1.Pool) { p.Annotations = map[string]string{v1alpha1.DiskOn: "n2"} })
		h.pass(time.Second)
		h.wantState(poolOf(disk1), v1alpha1.PoolReady, "", "")
		h.changePool(poolOf(disk1), func(p *v1alpha1.Pool) { p.Annotations = nil })
		h.stop()
		h.start()
		h.connects("n1", claiming(disk1, former))
		h.connects("n2", two)
		h.wantState(poolOf(disk1), v1alpha1.PoolReady, "", "")
		if s := h.pool(poolOf(disk1)).Status.Local; s.Node != "n2" {
			h.Errorf("the disk is on %s", s.Node)
		}
		h.wantEvents("WrongKey: node n1", 1)
		if err := h.local().DeleteVolume(h.Context(), "v"); err != nil {
			h.Error(err)
		}
	})
}

// TestPoolOfAPersonIsTheNamedNodes: a Pool made before its disk was seen may say whose that is.
func TestPoolOfAPersonIsTheNamedNodes(t *testing.T) {
	inLocal(t, func(h *testPools) {
		p := &v1alpha1.Pool{}
		p.Name, p.Annotations = "mine", map[string]string{v1alpha1.DiskOn: "n1"}
		p.Spec = v1alpha1.PoolSpec{ClassName: "nvme", Local: &v1alpha1.LocalPool{UUID: disk1}}
		h.add(p)
		h.connects("n2", nodeWith(disk1))
		h.wantEvents("WrongKey: node n2", 1)
		h.connects("n1", claiming(disk1, local.NewKey()))
		h.pass(testInterval)
		if s := h.pool("mine").Status.Local; s.Node != "n1" {
			h.Errorf("the disk is on %q", s.Node)
		}
	})
}
