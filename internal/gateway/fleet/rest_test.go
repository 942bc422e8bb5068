package fleet

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
)

// crowded are nodes with three volumes each, and the IDs of all, the newest first.
func crowded(count int) (nodes *fakeNodes, newest []string) {
	random := rand.New(rand.NewPCG(1, 2))
	nodes = &fakeNodes{}
	var all []volume.Record
	for i := range count {
		n := node(fmt.Sprintf("n%05d", i))
		for j := range 3 {
			r := record(fmt.Sprintf("v-%d-%d", i, j), 0)
			r.Unpublished = epoch.Add(time.Duration(random.Int64N(int64(12 * time.Hour)))) // by the nanosecond
			n.add(r)
			all = append(all, r)
		}
		nodes.nodes = append(nodes.nodes, n)
	}
	slices.SortFunc(all, func(a, b volume.Record) int { return b.Key().Compare(a.Key()) })
	for _, r := range all {
		newest = append(newest, string(r.ID))
	}
	return nodes, newest
}

// asked sums up what nodes were asked, and forgets it.
func (f *fakeNodes) asked() (nodes, queries int) {
	for _, n := range f.nodes {
		if q, _ := n.asked(); q > 0 {
			nodes, queries = nodes+1, queries+q
		}
		n.queries = nil
	}
	return nodes, queries
}

// TestFewOfManyNodes: of 20,000 nodes a page of 500 asks the thousand with the newest volumes, and each further page as many, beside
// those that were asked before. Nothing is missing in them.
func TestFewOfManyNodes(t *testing.T) { synctest.Test(t, testFewOfManyNodes) }

func testFewOfManyNodes(t *testing.T) {
	nodes, want := crowded(20_000)
	f, _ := newFleet(t, nodes, nil)
	r := Request{Reader: tenant, Namespace: "ci", Limit: 500}
	for i := range 3 {
		page, err := f.List(t.Context(), r)
		if err != nil || ids(page.Entries) != strings.Join(want[500*i:500*(i+1)], " ") || page.Warnings != nil {
			t.Fatalf("page %d: %d entries, %q, %v", i, len(page.Entries), page.Warnings, err)
		}
		asked, queries := nodes.asked()
		if asked < 1000 || asked > 1000+500*i || queries > asked+100 {
			t.Errorf("page %d: %d nodes were asked with %d queries", i, asked, queries)
		}
		if s := page.Fleet; s.Nodes != 20_000 || s.Asked != asked || s.Answered != asked {
			t.Errorf("page %d: %+v, %d were asked", i, s, asked)
		}
		if left := int64(60_000 - 500*(i+1)); page.Remaining == nil || *page.Remaining != left {
			t.Errorf("page %d: %v remain, want %d", i, page.Remaining, left)
		}
		r.Continue = page.Continue
	}
}

// TestAllNodesAreAsked: where they are few, and where what they say they hold does not say how much of it is in the list.
func TestAllNodesAreAsked(t *testing.T) { synctest.Test(t, testAllNodesAreAsked) }

func testAllNodesAreAsked(t *testing.T) {
	for name, tt := range map[string]struct {
		nodes, limit int
		r            Request
		says         func(*api.Holding)
	}{
		"a thousand":             {1000, 1, Request{}, nil},
		"twice the limit":        {3000, 1500, Request{}, nil},
		"selected by the node":   {1500, 1, Request{Query: api.Query{Job: "j"}}, nil},
		"selected by the list":   {1500, 1, Request{Keep: func(e Entry) bool { return e.Volume.ID == "v-1-1" }}, nil},
		"daemons that are older": {1500, 1, Request{}, func(h *api.Holding) { h.Newest = time.Time{} }},
		"clocks before 1970":     {1500, 1, Request{}, func(h *api.Holding) { h.Newest = time.Unix(0, 0) }},
	} {
		nodes, _ := crowded(tt.nodes)
		for _, n := range nodes.nodes {
			n.says = tt.says
		}
		f, _ := newFleet(t, nodes, nil)
		r := tt.r
		r.Reader, r.Namespace, r.Limit = tenant, "ci", tt.limit
		page, err := f.List(t.Context(), r)
		if asked, _ := nodes.asked(); err != nil || len(page.Entries) > tt.limit || asked != tt.nodes || page.Fleet.Asked != asked {
			t.Errorf("%s: %d nodes were asked, %+v, %v", name, asked, page.Fleet, err)
		}
	}
}

// TestNewestIsNotTrue: a node that says it holds newer volumes than it does is asked in vain, and hides none of another node, however
// many do so. One that says its newest is older hides what it has above that, and nothing else.
func TestNewestIsNotTrue(t *testing.T) { synctest.Test(t, testNewestIsNotTrue) }

func testNewestIsNotTrue(t *testing.T) {
	nodes := many(3000) // n2999 has the newest, v2999
	for _, n := range nodes.nodes[:1200] {
		n.says = func(h *api.Holding) { h.Newest = epoch.Add(1000 * time.Hour) }
	}
	nodes.nodes[2998].says = func(h *api.Holding) { h.Newest = epoch }
	nodes.nodes[2998].add(record("old", 0))
	f, dropped := newFleet(t, nodes, nil)
	var got, want []string
	for _, p := range all(t, f, Request{Reader: tenant, Namespace: "ci", Limit: 500}) {
		got = append(got, ids(p.Entries))
	}
	for i := 2999; i >= 0; i-- {
		if i != 2998 {
			want = append(want, fmt.Sprintf("v%d", i))
		}
	}
	want[len(want)-1] = "v0 old"
	if text := strings.Join(got, " "); text != strings.Join(want, " ") || dropped() > 0 {
		t.Errorf("%d are left out, listed are %.300s", dropped(), text)
	}
}

// TestTheRestIsAsked: where the nodes that are asked first do not answer, or have nothing to show, the page has the volumes of the
// next ones.
func TestTheRestIsAsked(t *testing.T) {
	for name, tt := range map[string]struct {
		do      func(*fakeNode)
		missing int
	}{
		"broken": {func(n *fakeNode) { n.before = func(context.Context, api.Query) error { return errBroken } }, 1500},
		"silent": {func(n *fakeNode) { n.before = silentNode }, 1500},
		"empty":  {func(n *fakeNode) { n.after = func(_ api.Query, l *api.VolumeList) { *l = api.VolumeList{} } }, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			nodes := many(4000)
			for _, n := range nodes.nodes[2500:] {
				tt.do(n)
			}
			f, _ := newFleet(t, nodes, nil)
			page, err := f.List(t.Context(), Request{Reader: tenant, Namespace: "ci", Limit: 100})
			if err != nil || len(page.Entries) != 100 || page.Entries[0].Volume.ID != "v2499" || page.Entries[99].Volume.ID != "v2400" {
				t.Fatalf("%s: %d entries, %v", name, len(page.Entries), err)
			}
			if s := page.Fleet; len(s.Missing)+s.MissingMore != tt.missing || s.Asked-s.Answered != tt.missing {
				t.Errorf("%s: %+v", name, s)
			}
		})
	}
}

// TestWhoIsNotNeededIsNotMissed: a list does not wait for a silent node that holds nothing for the page, and does not name it. One
// that is silent on the page that it is needed for is missing there.
func TestWhoIsNotNeededIsNotMissed(t *testing.T) { synctest.Test(t, testWhoIsNotNeededIsNotMissed) }

func testWhoIsNotNeededIsNotMissed(t *testing.T) {
	nodes := many(3000)
	nodes.nodes[1300].before = silentNode
	f, _ := newFleet(t, nodes, nil)
	missing := 0
	for i, p := range all(t, f, Request{Reader: tenant, Namespace: "ci", Limit: 500}) {
		if i < 2 && len(p.Fleet.Missing) > 0 {
			t.Errorf("page %d: %+v", i, p.Fleet)
		}
		missing = len(p.Fleet.Missing)
	}
	if missing != 1 {
		t.Errorf("%d nodes are missing at the end", missing)
	}
}

// TestNewestOfHoldings: it is that of what may be in the list, to the nanosecond, and unknown if one does not say it.
func TestNewestOfHoldings(t *testing.T) {
	at := func(nanoseconds int64, h api.Holding) api.Holding {
		h.Volumes, h.Newest = 1, epoch.Add(time.Duration(nanoseconds))
		return h
	}
	mine := api.Holding{Namespace: "ci", NamespaceUID: "ci-2", Verdict: "Confirmed"}
	former := api.Holding{Namespace: "ci", NamespaceUID: "ci-1", Verdict: "Confirmed"}
	denied, unasked := api.Holding{Namespace: "ci", Verdict: "Denied"}, api.Holding{Namespace: "ci"}
	none := api.Holding{Namespace: "ci", Volumes: 1}
	others := api.Holding{Namespace: volume.OtherNamespaces, Volumes: 1}
	tenancy := standardNamespaces["ci"]
	for name, tt := range map[string]struct {
		holdings []api.Holding
		want     time.Time
	}{
		"one":                  {[]api.Holding{at(7, mine)}, epoch.Add(7)},
		"foreign ones":         {[]api.Holding{at(7, mine), at(9, former), at(9, denied)}, epoch.Add(7)},
		"one that may be mine": {[]api.Holding{at(7, mine), at(9, unasked)}, epoch.Add(9)},
		"none of it is left":   {[]api.Holding{at(7, mine), {Namespace: "ci", Newest: epoch.Add(9)}}, epoch.Add(7)},
		"not said":             {[]api.Holding{at(7, mine), none}, time.Time{}},
		"perhaps of others":    {[]api.Holding{at(7, mine), others}, time.Time{}},
	} {
		_, newest, _ := held(tt.holdings, api.Query{Namespace: "ci", Tenancy: &tenancy})
		v := describe(record("v", 0), "n1")
		v.RetainedAt = &tt.want
		switch {
		case tt.want.IsZero() != newest.isTop():
			t.Errorf("%s: %v", name, newest)
		case tt.want.IsZero():
		case placeOf(&v).compare(newest) >= 0:
			t.Errorf("%s: a volume of %v is not below %v", name, tt.want, newest)
		default:
			if v.RetainedAt = new(tt.want.Add(1)); placeOf(&v).compare(newest) <= 0 {
				t.Errorf("%s: a newer volume than %v is below %v", name, tt.want, newest)
			}
		}
	}
}

// TestTheRestFollows: a page that is full while the nodes that it asked have no more is not the last one.
func TestTheRestFollows(t *testing.T) { synctest.Test(t, testTheRestFollows) }

func testTheRestFollows(t *testing.T) {
	nodes := many(5) // v4 is the newest
	for _, n := range nodes.nodes[1:3] {
		n.after = func(_ api.Query, l *api.VolumeList) { *l = api.VolumeList{} }
	}
	f, _ := newFleet(t, nodes, nil)
	f.least = 4
	pages := all(t, f, Request{Reader: tenant, Namespace: "ci", Limit: 2})
	if len(pages) != 2 || ids(pages[0].Entries) != "v4 v3" || pages[0].Fleet.Asked != 4 || ids(pages[1].Entries) != "v0" {
		t.Errorf("%+v", pages)
	}
}
