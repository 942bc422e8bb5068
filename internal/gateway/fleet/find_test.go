package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
)

// lookup asks for a volume on a node by its ID.
func lookup(r Reader, namespace, node, pod, id string) Lookup {
	return Lookup{Reader: r, Namespace: namespace, NodeHash: hash(node), Pod: pod,
		Match: func(v api.Volume) bool { return v.Node == node && v.ID == id }}
}

// TestFind: a name leads to one volume, for those who may see it.
func TestFind(t *testing.T) { synctest.Test(t, testFind) }

func testFind(t *testing.T) {
	nodes := tenancies()
	long := record("long", 1)
	long.PodName = strings.Repeat("p", 245)
	nodes.nodes[0].add(long)
	for i := range 3 { // with the hashes of all others
		for j := range 10 {
			nodes.nodes = append(nodes.nodes, node(fmt.Sprintf("other-%d-%d", i, j), record("mine", 9)))
		}
	}
	nodes.nodes[0].page = func() int { return 2 }
	f, _ := newFleet(t, nodes, nil)
	truncated := lookup(tenant, "ci", "n1", long.PodName[:240], "long")
	truncated.Truncated = true
	for _, tt := range []struct {
		name    string
		l       Lookup
		found   bool
		foreign bool
	}{
		{"mine", lookup(tenant, "ci", "n1", "pod-mine", "mine"), true, false},
		{"mine, for everyone", lookup(everyone, "ci", "n1", "pod-mine", "mine"), true, false},
		{"unasked", lookup(tenant, "ci", "n1", "pod-unasked", "unasked"), true, false},
		{"another pod", lookup(tenant, "ci", "n1", "pod-unasked", "mine"), false, false},
		{"another namespace", lookup(everyone, home, "n1", "pod-mine", "mine"), false, false},
		{"former", lookup(tenant, "ci", "n1", "pod-former", "former"), false, false},
		{"former, for everyone", lookup(everyone, "ci", "n1", "pod-former", "former"), true, true},
		{"denied", lookup(tenant, "ci", "n1", "pod-denied", "denied"), false, false},
		{"too early", lookup(tenant, "ci", "n1", "pod-unasked", "early"), false, false},
		{"orphan", lookup(tenant, home, "n1", "", "orphan"), false, false},
		{"orphan, for everyone", lookup(everyone, home, "n1", "", "orphan"), true, true},
		{"orphan, elsewhere", lookup(everyone, "ci", "n1", "", "orphan"), false, false},
		{"own", lookup(everyone, home, "n1", "pod-own", "own"), true, false},
		{"no such namespace", lookup(tenant, "deleted", "n1", "pod-deleted", "deleted"), false, false},
		{"no such volume", lookup(tenant, "ci", "n1", "pod-mine", "other"), false, false},
		{"truncated", truncated, true, false},
		{"not truncated", lookup(tenant, "ci", "n1", long.PodName[:240], "long"), false, false},
	} {
		found, err := f.Find(t.Context(), tt.l)
		switch {
		case tt.found && (err != nil || found.Node.Node() != "n1" || found.Volume.Node != "n1" || found.Foreign != tt.foreign):
			t.Errorf("%s: %+v, %v", tt.name, found, err)
		case !tt.found && !errors.Is(err, ErrNotFound):
			t.Errorf("%s: %+v, %v", tt.name, found, err)
		}
	}
	none := lookup(everyone, "ci", "n1", "pod-mine", "mine")
	none.NodeHash = 1000
	if _, err := f.Find(t.Context(), none); !errors.Is(err, ErrNotFound) {
		t.Errorf("no node: %v", err)
	}
	if _, err := f.Find(t.Context(), lookup(tenant, "broken", "n1", "pod", "id")); !errors.Is(err, errBroken) {
		t.Errorf("namespaces are not known: %v", err)
	}
}

// TestFindOnNodesThatDoNotAnswer: "not found" is said only if every node has said so that may have the
// volume.
func TestFindOnNodesThatDoNotAnswer(t *testing.T) {
	mine := lookup(tenant, "ci", "n1", "pod-mine", "mine")
	var twin string
	for i := 0; twin == "" || hash(twin) != hash("n1"); i++ {
		twin = fmt.Sprintf("twin-%d", i)
	}
	refused := &api.Error{Status: api.Status{Code: 503, Reason: api.ServiceUnavailable, Message: "starting"}}
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct {
			name  string
			nodes *fakeNodes
			err   func(error) bool
			took  time.Duration
		}{
			{"gone", &fakeNodes{missing: []Missing{{"n1", epoch, NotConnected}}}, func(err error) bool {
				away := (*NotConnectedError)(nil)
				return errors.As(err, &away) && strings.HasSuffix(err.Error(), "n1 is not connected to this gateway since 2026-11-01T12:00:00Z")
			}, 0},
			{"silent", &fakeNodes{nodes: []*fakeNode{{name: "n1", before: silentNode}}},
				func(err error) bool { return errors.Is(err, ErrSilent) }, listTime},
			{"broken", &fakeNodes{nodes: []*fakeNode{{name: "n1", before: func(context.Context, api.Query) error { return refused }}}},
				func(err error) bool { return errors.Is(err, refused) }, 0},
			{"found, and a twin is gone", &fakeNodes{nodes: tenancies().nodes, missing: []Missing{{twin, epoch, NotConnected}}},
				func(err error) bool { return err == nil }, 0},
			{"not found, and a twin is gone", &fakeNodes{nodes: []*fakeNode{node("n1")}, missing: []Missing{{twin, epoch, NotConnected}}},
				func(err error) bool { away := (*NotConnectedError)(nil); return errors.As(err, &away) }, 0},
		} {
			f, _ := newFleet(t, tt.nodes, nil)
			began := time.Now()
			if _, err := f.Find(t.Context(), mine); !tt.err(err) || time.Since(began) != tt.took {
				t.Errorf("%s: %v after %v", tt.name, err, time.Since(began))
			}
		}
	})
}

// TestFindPodUnknown: volumes of unknown pods are found among many, and by what the gateway knows.
func TestFindPodUnknown(t *testing.T) { synctest.Test(t, testFindPodUnknown) }

func testFindPodUnknown(t *testing.T) {
	n := node("n1")
	for i := range 20_000 {
		r := record(fmt.Sprintf("v%d", i), i)
		r.Namespace, r.PodName, r.Owner = "", "", volume.Owner{}
		n.volumes = append(n.volumes, r)
	}
	slices.Reverse(n.volumes)
	f, dropped := newFleet(t, &fakeNodes{nodes: []*fakeNode{n}}, nil)
	if found, err := f.Find(t.Context(), lookup(everyone, home, "n1", "", "v3")); err != nil || found.Volume.ID != "v3" || dropped() > 0 {
		t.Errorf("%+v, %v", found, err)
	}
	if queries, _ := n.asked(); queries != 4 {
		t.Errorf("%d queries", queries)
	}
}
