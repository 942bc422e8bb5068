package fleet

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
)

// TestConfig: what is missing is named.
func TestConfig(t *testing.T) {
	whole := Config{
		Nodes: &fakeNodes{}, Namespaces: fakeNamespaces{}, Owners: fakeOwners{}, Key: make([]byte, 32), Namespace: "a", Log: logr.Discard(),
	}
	for name, change := range map[string]func(*Config){
		"Config.Nodes":      func(c *Config) { c.Nodes = nil },
		"Config.Namespaces": func(c *Config) { c.Namespaces = nil },
		"Config.Owners":     func(c *Config) { c.Owners = nil },
		"Config.Key":        func(c *Config) { c.Key = c.Key[:31] },
		"Config.Namespace":  func(c *Config) { c.Namespace = "" },
	} {
		c := whole
		change(&c)
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: %v", name, err)
		}
	}
	if _, err := New(whole); err != nil {
		t.Error(err)
	}
}

// TestLimits: a list without a limit, or with one that is too high, says that there is more.
func TestLimits(t *testing.T) { synctest.Test(t, testLimits) }

func testLimits(t *testing.T) {
	n := node("n1")
	for i := range 6000 {
		n.volumes = append(n.volumes, record(fmt.Sprintf("v%d", i), 6000-i))
	}
	nodes := &fakeNodes{nodes: []*fakeNode{n}}
	f, _ := newFleet(t, nodes, nil)
	for _, tt := range []struct {
		limit, want int
		remain      int64
		warning     string
	}{
		{0, 500, 5500, "this list is not complete: without a limit it ends after 500 volumes; ask on with \"continue\""},
		{-1, 500, 5500, "this list is not complete: without a limit it ends after 500 volumes; ask on with \"continue\""},
		{1, 1, 5999, ""},
		{5000, 5000, 1000, ""},
		{5001, 5000, 1000, "this list is not complete: limit=5001 is more than 5000; ask on with \"continue\""},
	} {
		page, err := f.List(t.Context(), Request{Reader: tenant, Namespace: "ci", Limit: tt.limit})
		if err != nil || len(page.Entries) != tt.want || page.Continue == "" || strings.Join(page.Warnings, "|") != tt.warning {
			t.Errorf("limit %d: %d entries, %q, %v", tt.limit, len(page.Entries), page.Warnings, err)
		}
		if page.Remaining == nil || *page.Remaining != tt.remain {
			t.Errorf("limit %d: %v remain, want %d", tt.limit, page.Remaining, tt.remain)
		}
	}
	n.volumes = n.volumes[:500]
	for _, limit := range []int{0, 5001, 501} {
		page, err := f.List(t.Context(), Request{Reader: tenant, Namespace: "ci", Limit: limit})
		if err != nil || len(page.Entries) != 500 || page.Continue != "" || page.Warnings != nil || page.Remaining != nil {
			t.Errorf("limit %d: %d entries, %q, %v", limit, len(page.Entries), page.Warnings, err)
		}
	}
}

// TestRemaining: how many follow is said only where the holdings say it.
func TestRemaining(t *testing.T) { synctest.Test(t, testRemaining) }

func testRemaining(t *testing.T) {
	unasked := func(n *fakeNode) {
		r := record("unasked", 1000)
		r.Owner = volume.Owner{}
		n.add(r)
	}
	for _, tt := range []struct {
		name  string
		r     Request
		first func(*fakeNode)
		want  string
	}{
		{"namespace", Request{Reader: tenant, Namespace: "ci"}, nil, "7 4 1 none"},
		{"all", Request{Reader: everyone}, nil, "7 4 1 none"},
		{"selected by the node", Request{Reader: tenant, Namespace: "ci", Query: api.Query{PodPrefix: "pod"}}, nil, "none none none none"},
		{"selected by the list", Request{Reader: tenant, Namespace: "ci", Keep: func(Entry) bool { return true }}, nil, "none none none none"},
		{"perhaps foreign", Request{Reader: tenant, Namespace: "ci"}, unasked, "none none none none"},
		{"perhaps foreign, for everyone", Request{Reader: everyone, Namespace: "ci"}, unasked, "8 5 2 none"},
		{"not known", Request{Reader: tenant, Namespace: "ci"}, func(n *fakeNode) { n.quiet = true }, "none none none none"},
		{"foreign", Request{Reader: tenant, Namespace: "ci"}, func(n *fakeNode) {
			r := record("former", -1)
			r.Owner.NamespaceUID = "ci-1"
			n.add(r)
		}, "7 4 1 none"},
	} {
		nodes := many(10)
		if tt.first != nil {
			tt.first(nodes.nodes[0])
		}
		f, _ := newFleet(t, nodes, nil)
		tt.r.Limit = 3
		var got []string
		for _, p := range all(t, f, tt.r) {
			if p.Remaining == nil {
				got = append(got, "none")
			} else {
				got = append(got, fmt.Sprint(*p.Remaining))
			}
		}
		if text := strings.Join(got, " "); text != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, text, tt.want)
		}
	}
}

// TestNodesAreSelected: only those nodes are asked, and missed, that may hold what is selected.
func TestNodesAreSelected(t *testing.T) { synctest.Test(t, testNodesAreSelected) }

func testNodesAreSelected(t *testing.T) {
	nodes := many(10)
	nodes.missing = []Missing{{Node: "m1", Reason: NotConnected}, {Node: "m2", Reason: NotConnected}}
	f, _ := newFleet(t, nodes, nil)
	page, err := f.List(t.Context(), Request{Reader: everyone, Nodes: func(node string) bool { return node == "n0003" || node == "m2" }})
	if err != nil || ids(page.Entries) != "v3" || page.Fleet.Asked != 1 || len(page.Fleet.Missing) != 1 || page.Fleet.Missing[0].Node != "m2" {
		t.Errorf("%s, %+v, %v", ids(page.Entries), page.Fleet, err)
	}
	if want := "1 of 12 nodes did not answer (m2); its volumes are not in this list"; len(page.Warnings) != 1 || page.Warnings[0] != want {
		t.Errorf("warnings %q", page.Warnings)
	}
}

// TestManyNamespaces: a node that counts some namespaces together may hold volumes of any.
func TestManyNamespaces(t *testing.T) {
	for _, namespace := range []string{"ci", home} {
		for verdict, want := range map[string]bool{"Confirmed": true, "": true} {
			others := []api.Holding{{Namespace: volume.OtherNamespaces, Volumes: 3, Verdict: verdict}}
			volumes, _, exact := held(others, api.Query{Namespace: namespace})
			if asked := volumes > 0 || !exact; asked != want {
				t.Errorf("%s, %s: %d volumes, %v", namespace, verdict, volumes, exact)
			}
		}
	}
}

// TestKeepLittle: a selection that hardly anything passes leads to short pages and not to many
// questions.
func TestKeepLittle(t *testing.T) { synctest.Test(t, testKeepLittle) }

func testKeepLittle(t *testing.T) {
	nodes := &fakeNodes{}
	for i := range 50 {
		n := node(fmt.Sprintf("n%d", i))
		for j := range 200 {
			n.add(record(fmt.Sprintf("v-%d-%d", i, j), 200*i+j))
		}
		nodes.nodes = append(nodes.nodes, n)
	}
	f, _ := newFleet(t, nodes, nil)
	count := 0
	pages := all(t, f, Request{Reader: tenant, Namespace: "ci", Limit: 100, Keep: func(e Entry) bool { return e.Volume.ID == "v-25-7" }})
	for _, p := range pages {
		count += len(p.Entries)
	}
	volumes := 0
	for _, n := range nodes.nodes {
		_, v := n.asked()
		volumes += v
	}
	if count != 1 || len(pages) > 60 || volumes > len(pages)*(4*50+2*50*100) {
		t.Errorf("%d found on %d pages for %d volumes", count, len(pages), volumes)
	}
}
