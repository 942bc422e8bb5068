package fleet

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
)

// tenancies are a volume of each kind, on one node.
func tenancies() *fakeNodes {
	foreign := record("former", 8)
	foreign.Owner.NamespaceUID = "ci-1"
	denied := record("denied", 7)
	denied.Owner = volume.Owner{Verdict: volume.Denied}
	young := record("unasked", 6)
	young.Owner = volume.Owner{}
	old := young
	old.ID, old.Published, old.Unpublished = "early", epoch.Add(-time.Second), epoch.Add(5*time.Second)
	orphan := record("orphan", 4)
	orphan.Namespace, orphan.PodName, orphan.Owner, orphan.Published = "", "", volume.Owner{}, time.Time{}
	own := record("own", 3)
	own.Namespace, own.Owner.NamespaceUID = home, "home"
	deleted := record("deleted", 2)
	deleted.Namespace = "deleted"
	return &fakeNodes{nodes: []*fakeNode{node("n1", record("mine", 9), foreign, denied, young, old, orphan, own, deleted)}}
}

// TestTenancy is T20, T21 and T22: whose a volume is decides the namespace's UID, or the time if nobody
// was asked; what belongs to nobody is shown to those alone who may see everything.
func TestTenancy(t *testing.T) { synctest.Test(t, testTenancy) }

func testTenancy(t *testing.T) {
	for _, tt := range []struct {
		name, namespace string
		reader          Reader
		want            string
	}{
		{"tenant", "ci", tenant, "mine unasked"},
		{"everything of a namespace", "ci", everyone, "mine former* denied* unasked early*"},
		{"all namespaces", "", everyone, "mine former* denied* unasked early* orphan* own deleted*"},
		{"the gateway's namespace", home, everyone, "orphan* own"},
		{"the gateway's namespace for a tenant", home, tenant, "own"},
		{"a namespace that is gone", "deleted", everyone, "deleted*"},
		{"a namespace that is gone, for a tenant", "deleted", tenant, ""},
	} {
		for _, limit := range []int{1, 2, 500} {
			f, dropped := newFleet(t, tenancies(), nil)
			var got []Entry
			for _, p := range all(t, f, Request{Reader: tt.reader, Namespace: tt.namespace, Limit: limit}) {
				got = append(got, p.Entries...)
			}
			if ids(got) != tt.want || dropped() > 0 {
				t.Errorf("%s, limit %d: %s, want %s; %d left out", tt.name, limit, ids(got), tt.want, dropped())
			}
		}
	}
	f, _ := newFleet(t, tenancies(), nil)
	if _, err := f.List(t.Context(), Request{Reader: tenant}); err == nil {
		t.Error("a tenant lists all namespaces")
	}
	if _, err := f.List(t.Context(), Request{Reader: tenant, Namespace: "broken"}); !errors.Is(err, errBroken) {
		t.Errorf("namespaces are not known: %v", err)
	}
}

// lateNamespaces knows at once only what is looked up.
type lateNamespaces struct{ fakeNamespaces }

func (lateNamespaces) Tenancy(string) (volume.Tenancy, bool) {
	return volume.Tenancy{UID: "ci-1", Since: epoch.Add(-time.Hour)}, true
}

// TestNamespaceMadeAgain: the new namespace's readers see its volumes and none of the old ones, before
// the gateway has heard of it, and also if a node does not leave them out.
func TestNamespaceMadeAgain(t *testing.T) { synctest.Test(t, testNamespaceMadeAgain) }

func testNamespaceMadeAgain(t *testing.T) {
	nodes := tenancies()
	former := nodes.nodes[0].volumes[1]
	nodes.nodes[0].after = func(_ api.Query, l *api.VolumeList) {
		l.Items = slices.Insert(l.Items, 1, describe(former, "n1"))
	}
	f, _ := newFleet(t, nodes, nil)
	f.cfg.Namespaces = lateNamespaces{standardNamespaces}
	page, err := f.List(t.Context(), Request{Reader: tenant, Namespace: "ci"})
	if err != nil || ids(page.Entries) != "mine unasked" {
		t.Errorf("%s, %v", ids(page.Entries), err)
	}
}

// TestGatewayKnowsBetter is T8: what the gateway has read of a pod beats what its node says, or another.
func TestGatewayKnowsBetter(t *testing.T) { synctest.Test(t, testGatewayKnowsBetter) }

func testGatewayKnowsBetter(t *testing.T) {
	confirmed := api.Owner{Verdict: "Confirmed", NamespaceUID: "ci-2", Kind: "Job", Name: "other", Job: "other"}
	foreign := confirmed
	foreign.NamespaceUID = "ci-1"
	for _, tt := range []struct {
		name  string
		known map[string]api.Owner
		want  string
	}{
		{"nothing is known", nil, "mine unasked"},
		{"the pod was of another namespace", map[string]api.Owner{"pod-mine": foreign}, "unasked"},
		{"there was no such pod", map[string]api.Owner{"pod-mine": {Verdict: "Denied"}, "pod-unasked": {Verdict: "Denied"}}, ""},
		{"the node does not know yet", map[string]api.Owner{"pod-unasked": confirmed}, "mine unasked"},
	} {
		owners := fakeOwners{}
		for pod, o := range tt.known {
			owners[[2]string{pod, "n1"}] = o
		}
		f, _ := newFleet(t, tenancies(), owners)
		page, err := f.List(t.Context(), Request{Reader: tenant, Namespace: "ci"})
		if err != nil || ids(page.Entries) != tt.want {
			t.Errorf("%s: %s, want %s; %v", tt.name, ids(page.Entries), tt.want, err)
		}
		for _, e := range page.Entries {
			if known, ok := tt.known[e.Volume.PodUID]; ok && e.Volume.Owner.Name != known.Name {
				t.Errorf("%s: %s is of %+v", tt.name, e.Volume.ID, e.Volume.Owner)
			}
		}
	}
}

// TestLies: what a node cannot truly have answered is left out and counted, and changes nothing of what
// other nodes have answered.
func TestLies(t *testing.T) { synctest.Test(t, testLies) }

func testLies(t *testing.T) {
	at := func(seconds int) *time.Time { return new(epoch.Add(time.Duration(seconds) * time.Second)) }
	lie := func(change func(*api.Volume)) func(*api.VolumeList) {
		return func(l *api.VolumeList) {
			v := describe(record("lie", 6), "liar")
			change(&v)
			l.Items = append(l.Items, v)
		}
	}
	long := strings.Repeat("x", 300)
	size := new(int64(-1))
	for name, change := range map[string]func(*api.VolumeList){
		"of another node":      lie(func(v *api.Volume) { v.Node = "honest" }),
		"of another namespace": lie(func(v *api.Volume) { v.Namespace = "other" }),
		"of no namespace":      lie(func(v *api.Volume) { v.Namespace = "" }),
		"published":            lie(func(v *api.Volume) { v.Phase = "Published" }),
		"without a time":       lie(func(v *api.Volume) { v.RetainedAt = nil }),
		"out of order":         lie(func(v *api.Volume) { v.RetainedAt = at(8) }),
		"twice":                lie(func(v *api.Volume) { v.ID = "true" }),
		"an ID with a slash":   lie(func(v *api.Volume) { v.ID = "../a" }),
		"without an ID":        lie(func(v *api.Volume) { v.ID = "" }),
		"a long ID":            lie(func(v *api.Volume) { v.ID = long }),
		"no pod":               lie(func(v *api.Volume) { v.PodUID = "" }),
		"a pod's name":         lie(func(v *api.Volume) { v.Pod = "A\x1b[2J" }),
		"a volume's name":      lie(func(v *api.Volume) { v.Volume = long }),
		"a negative size":      lie(func(v *api.Volume) { v.Bytes = size }),
		"a huge size":          lie(func(v *api.Volume) { v.Inodes = new(int64(1 << 62)) }),
		"a year of five digits": lie(func(v *api.Volume) {
			v.ExpiresAt = new(time.Date(9999, 12, 31, 23, 0, 0, 0, time.FixedZone("", -3600*5)))
		}),
		"a year before the first": lie(func(v *api.Volume) {
			v.PublishedAt = new(time.Date(0, 12, 31, 0, 0, 0, 0, time.UTC))
		}),
		"a verdict":    lie(func(v *api.Volume) { v.Owner.Verdict = "Sure" }),
		"a long owner": lie(func(v *api.Volume) { v.Owner.Name = long }),
		"before the end": func(l *api.VolumeList) {
			l.Items = append(l.Items, describe(record("lie", 3), "liar"))
			l.Continue = api.FormatKey(volume.Key{Unpublished: *at(5), ID: "x"})
		},
	} {
		nodes := &fakeNodes{nodes: []*fakeNode{node("honest", record("a", 9), record("b", 5), record("c", 1)), node("liar", record("true", 7))}}
		once := false
		nodes.nodes[1].after = func(q api.Query, l *api.VolumeList) {
			if !once {
				change(l)
			}
			once = true
		}
		f, dropped := newFleet(t, nodes, nil)
		var got []Entry
		for _, p := range all(t, f, Request{Reader: tenant, Namespace: "ci"}) {
			got = append(got, p.Entries...)
		}
		if ids(got) != "a true b c" || dropped() != 1 {
			t.Errorf("%s: %s, %d left out", name, ids(got), dropped())
		}
	}
}

// TestBrokenPages: a node that answers with something that is no page is missing, and the list ends.
func TestBrokenPages(t *testing.T) { synctest.Test(t, testBrokenPages) }

func testBrokenPages(t *testing.T) {
	for name, change := range map[string]func(api.Query, *api.VolumeList){
		"continue is nonsense": func(_ api.Query, l *api.VolumeList) { l.Continue = "nonsense" },
		"continue leads up": func(q api.Query, l *api.VolumeList) {
			l.Continue = api.FormatKey(volume.Key{Unpublished: epoch.Add(time.Hour), ID: "x"})
			if q.Continue != "" {
				l.Continue = q.Continue
			}
			l.Items = nil
		},
		"more than it was asked for": func(q api.Query, l *api.VolumeList) {
			for len(l.Items) <= q.Limit {
				l.Items = append(l.Items, describe(record("true", 100), "liar"))
			}
		},
	} {
		nodes := many(9)
		nodes.nodes = append(nodes.nodes, node("liar", record("true", 100)))
		nodes.nodes[9].after = change
		f, _ := newFleet(t, nodes, nil)
		count := 0
		pages := all(t, f, Request{Reader: tenant, Namespace: "ci", Limit: 4})
		for _, p := range pages {
			count += len(p.Entries)
		}
		missing := pages[len(pages)-1].Fleet.Missing
		if count != 9 || len(pages) > 4 || !slices.Equal(missing, []Missing{{Node: "liar", Reason: Failed}}) {
			t.Errorf("%s: %d entries on %d pages, %+v", name, count, len(pages), missing)
		}
	}
}

// TestSelectorsAreChecked: a node that ignores what it was asked to select by gains nothing.
func TestSelectorsAreChecked(t *testing.T) { synctest.Test(t, testSelectorsAreChecked) }

func testSelectorsAreChecked(t *testing.T) {
	for name, q := range map[string]api.Query{
		"pod": {Pod: "pod-v3"}, "prefix": {PodPrefix: "pod-v3"}, "UID": {PodUID: "pod-v3"}, "since": {Since: epoch.Add(3 * time.Second)},
	} {
		nodes := &fakeNodes{nodes: []*fakeNode{node("n1", record("v3", 3)), node("n2")}}
		nodes.nodes[1].quiet = true
		nodes.nodes[1].after = func(_ api.Query, l *api.VolumeList) { l.Items = append(l.Items, describe(record("v2", 2), "n2")) }
		f, dropped := newFleet(t, nodes, nil)
		page, err := f.List(t.Context(), Request{Reader: tenant, Namespace: "ci", Query: q})
		if err != nil || ids(page.Entries) != "v3" || dropped() != 1 {
			t.Errorf("%s: %s, %d left out, %v", name, ids(page.Entries), dropped(), err)
		}
	}
}
