package fleet

import (
	"context"
	"errors"
	"testing"

	"github.com/katbox/katbox/internal/model/api"
)

// claimNode is a node with volumes as it says they are.
type claimNode []api.Volume

func (claimNode) Node() string { return "n1" }

func (n claimNode) List(_ context.Context, _ Reader, q api.Query) (list api.VolumeList, err error) {
	for _, v := range n {
		if v.Namespace == q.Namespace && (q.Pod == "" || q.Pod == v.Claim) {
			list.Items = append(list.Items, v)
		}
	}
	return list, nil
}

func (claimNode) Gone(context.Context, Reader, api.GoneQuery) (list api.GoneList, err error) {
	return list, nil
}

// claimNodes are the only node.
type claimNodes struct{ claimNode }

func (c claimNodes) Look(_ context.Context, namespace string) Look {
	return Look{Held: []Held{{Node: c.claimNode, Holdings: []api.Holding{{Namespace: namespace, Volumes: len(c.claimNode)}}}}, Count: 1}
}
func (c claimNodes) LookAll(ctx context.Context) Look { return c.Look(ctx, "") }

func (c claimNodes) ByHash(context.Context, uint32) []State { return []State{{Node: c.claimNode}} }

// TestClaims: a claim's volume is for those who may see the namespace with the UID that the claim's had, and has no
// pod that the gateway could know better.
func TestClaims(t *testing.T) {
	volumeOf := func(id, uid string, change ...func(*api.Volume)) api.Volume {
		at := epoch
		v := api.Volume{ID: id, Namespace: "ci", Claim: "data", Phase: "Retained", RetainedAt: &at, PublishedAt: &at,
			Owner: &api.Owner{Verdict: "Confirmed", NamespaceUID: uid, Kind: "PersistentVolumeClaim", Name: "data"}}
		for _, f := range change {
			f(&v)
		}
		return v
	}
	node := claimNode{
		volumeOf("pvc-6", "ci-2"),
		volumeOf("pvc-5", "ci-1"),
		volumeOf("pvc-4", "", func(v *api.Volume) { v.Owner = &api.Owner{Verdict: "Denied"} }),
		// What no node in its right mind says.
		volumeOf("pvc-3", "ci-2", func(v *api.Volume) { v.Pod = "web-0" }),
		volumeOf("pvc-2", "ci-2", func(v *api.Volume) { v.Pod, v.PodUID = "web-0", "uid" }),
		volumeOf("pvc-1", "ci-2", func(v *api.Volume) { v.Claim = "../data" }),
	}
	dropped := 0
	f, err := New(Config{
		Nodes: claimNodes{node}, Namespaces: fakeNamespaces{"ci": {UID: "ci-2", Since: epoch.Add(-1)}},
		Key: make([]byte, KeySize), Namespace: home,
		// Were it asked for a pod without a UID, all claims would have this owner.
		Owners: fakeOwners{{"", "n1"}: {Verdict: "Confirmed", NamespaceUID: "ci-2"}}, Dropped: func(_ string, n int) { dropped += n },
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		by   Reader
		want string
	}{{tenant, "pvc-6"}, {everyone, "pvc-6 pvc-5* pvc-4*"}} {
		page, err := f.List(t.Context(), Request{Reader: row.by, Namespace: "ci"})
		if err != nil || ids(page.Entries) != row.want {
			t.Errorf("%+v sees %q, %v; want %q", row.by, ids(page.Entries), err, row.want)
		}
	}
	if dropped != 6 {
		t.Errorf("%d entries were dropped, want 3 of each list", dropped)
	}
	find := func(by Reader, id string) error {
		_, err := f.Find(t.Context(), Lookup{Reader: by, Namespace: "ci", Pod: "data", Match: func(v api.Volume) bool { return v.ID == id }})
		return err
	}
	if err := find(tenant, "pvc-6"); err != nil {
		t.Error(err)
	}
	if err := find(tenant, "pvc-5"); !errors.Is(err, ErrNotFound) {
		t.Errorf("one of an earlier namespace: %v", err)
	}
	if err := find(everyone, "pvc-5"); err != nil {
		t.Error(err)
	}
}
