package fleet

import (
	"errors"
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

// TestGoneTenancy: no tenant sees what is gone of another one.
func TestGoneTenancy(t *testing.T) {
	n := node("n1")
	of := func(id string, adjust func(*volume.Record)) {
		r := record(id, 1)
		adjust(&r)
		n.bury(r, len(n.gone))
	}
	of("mine", func(*volume.Record) {})
	of("former", func(r *volume.Record) { r.Owner.NamespaceUID = "ci-1" })
	of("denied", func(r *volume.Record) { r.Owner = volume.Owner{Verdict: volume.Denied} })
	of("unasked", func(r *volume.Record) { r.Owner = volume.Owner{} })
	of("early", func(r *volume.Record) { r.Owner, r.Published = volume.Owner{}, epoch.Add(-time.Hour) })
	of("other", func(r *volume.Record) { r.Namespace = "other" })
	of("orphan", func(r *volume.Record) { r.Namespace, r.PodName, r.Owner = "", "", volume.Owner{} })
	f, dropped := newFleet(t, &fakeNodes{nodes: []*fakeNode{n}}, nil)
	for _, tt := range []struct {
		namespace string
		by        Reader
		want      string
	}{
		{"ci", tenant, "unasked mine"},
		{"ci", everyone, "early* unasked denied* former* mine"},
		{"", everyone, "orphan* other* early* unasked denied* former* mine"},
		{home, everyone, "orphan*"},
		{home, tenant, ""},
		{"other", tenant, ""},
	} {
		page, err := f.Gone(t.Context(), Request{Reader: tt.by, Namespace: tt.namespace})
		if got := ids(page.Entries); err != nil || got != tt.want || len(page.Warnings) > 0 {
			t.Errorf("%q, everywhere %t: %q, %v, %q; want %q", tt.namespace, tt.by.Everywhere, got, err, page.Warnings, tt.want)
		}
	}
	// A node that sends more than it was asked for is not believed.
	n.afterGone = func(_ api.GoneQuery, l *api.GoneList) {
		for i := range l.Items {
			l.Items[i].Namespace = "secret"
		}
	}
	page, err := f.Gone(t.Context(), Request{Reader: tenant, Namespace: "ci"})
	if err != nil || len(page.Entries) > 0 || dropped() != 2 {
		t.Errorf("%q, %v, %d dropped", ids(page.Entries), err, dropped())
	}
	if _, err := f.Gone(t.Context(), Request{Reader: tenant}); err == nil {
		t.Error("a tenant lists all namespaces")
	}
	if _, err := f.Gone(t.Context(), Request{Reader: everyone, Continue: "x"}); !errors.Is(err, ErrContinue) {
		t.Errorf("continue: %v", err)
	}
}

// TestGoneMerge: the page has what went last of all nodes, in that order, and says when there is more.
func TestGoneMerge(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, limit := range []int{1, 2, 10, 500} {
		nodes := &fakeNodes{}
		var want []string
		for i := range 20 {
			n := node(fmt.Sprintf("n%02d", i))
			count := random.IntN(30)
			if i == 3 {
				count = 200 // most of what went last is of one node
			}
			for j := range count {
				n.bury(record(fmt.Sprintf("v%02d-%03d", i, j), 1), 1000*j+i)
			}
			nodes.nodes = append(nodes.nodes, n)
		}
		var all []volume.Tombstone
		for _, n := range nodes.nodes {
			all = append(all, n.gone...)
		}
		slices.SortFunc(all, func(a, b volume.Tombstone) int { return b.Gone.Compare(a.Gone) })
		for _, x := range all[:min(limit, len(all))] {
			want = append(want, string(x.Record.ID))
		}
		f, _ := newFleet(t, nodes, nil)
		page, err := f.Gone(t.Context(), Request{Reader: everyone, Limit: limit})
		if got := ids(page.Entries); err != nil || got != strings.Join(want, " ") {
			t.Errorf("limit %d: %v\n%s, want\n%s", limit, err, got, want)
		}
		if more := len(all) > limit; more != (len(page.Warnings) == 1) {
			t.Errorf("limit %d of %d: warnings %q", limit, len(all), page.Warnings)
		}
	}
}

// TestGoneOfOldAndSilentNodes: they are missing, and if there are no others, the list is an error.
func TestGoneOfOldAndSilentNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old, silent, good := node("old"), node("silent"), node("good")
		old.old, silent.before = true, silentNode
		good.bury(record("a", 1), 1)
		f, _ := newFleet(t, &fakeNodes{nodes: []*fakeNode{old, silent, good}}, nil)
		page, err := f.Gone(t.Context(), Request{Reader: everyone})
		if err != nil || ids(page.Entries) != "a" || len(page.Fleet.Missing) != 2 || len(page.Warnings) != 1 {
			t.Errorf("%q, %+v, %q, %v", ids(page.Entries), page.Fleet, page.Warnings, err)
		}
		f, _ = newFleet(t, &fakeNodes{nodes: []*fakeNode{old}}, nil)
		if _, err = f.Gone(t.Context(), Request{Reader: everyone}); !errors.Is(err, api.ErrOlder) {
			t.Errorf("old nodes: %v", err)
		}
		f, _ = newFleet(t, &fakeNodes{nodes: []*fakeNode{silent}}, nil)
		if _, err = f.Gone(t.Context(), Request{Reader: everyone}); !errors.Is(err, ErrSilent) {
			t.Errorf("silent nodes: %v", err)
		}
	})
}

// TestGoneLies: what cannot be true is left out, and a page that leads nowhere ends.
func TestGoneLies(t *testing.T) {
	for name, lie := range map[string]func(*api.GoneVolume){
		"phase":    func(g *api.GoneVolume) { g.Phase = "Retained" },
		"node":     func(g *api.GoneVolume) { g.Node = "n2" },
		"reason":   func(g *api.GoneVolume) { g.Reason = strings.Repeat("x", 65) },
		"kept":     func(g *api.GoneVolume) { g.Kept = "1\n" },
		"by":       func(g *api.GoneVolume) { g.By = "\x1b[31m" },
		"why":      func(g *api.GoneVolume) { g.Why = strings.Repeat("x", 1025) },
		"year":     func(g *api.GoneVolume) { g.GoneAt = time.Date(12026, 1, 1, 0, 0, 0, 0, time.UTC) },
		"number":   func(g *api.GoneVolume) { g.Number = 0 },
		"outcome":  func(g *api.GoneVolume) { g.Outcome = "Better" },
		"hold":     func(g *api.GoneVolume) { g.Hold = &api.Hold{Kind: "None", Until: epoch} },
		"who held": func(g *api.GoneVolume) { g.Hold = &api.Hold{Kind: "Pinned", Until: epoch, By: "a\nb"} },
		"retain":   func(g *api.GoneVolume) { g.Terms = &api.Terms{Retain: "Sometimes"} },
		"limit":    func(g *api.GoneVolume) { g.Terms = &api.Terms{LimitBytes: -1} },
		"lifespan": func(g *api.GoneVolume) { g.Terms = &api.Terms{Lifespan: strings.Repeat("1h", 100)} },
	} {
		n := node("n1")
		n.bury(record("a", 1), 1)
		n.bury(record("b", 1), 2)
		n.afterGone = func(_ api.GoneQuery, l *api.GoneList) { lie(&l.Items[0]) }
		f, dropped := newFleet(t, &fakeNodes{nodes: []*fakeNode{n}}, nil)
		page, err := f.Gone(t.Context(), Request{Reader: everyone})
		if err != nil || ids(page.Entries) != "a" || dropped() != 1 {
			t.Errorf("%s: %q, %v, %d dropped", name, ids(page.Entries), err, dropped())
		}
	}
	synctest.Test(t, func(t *testing.T) {
		n := node("n1")
		n.bury(record("a", 1), 1)
		n.afterGone = func(_ api.GoneQuery, l *api.GoneList) { l.Continue = 7 }
		f, _ := newFleet(t, &fakeNodes{nodes: []*fakeNode{n}}, nil)
		page, err := f.Gone(t.Context(), Request{Reader: everyone})
		if err != nil || len(page.Entries) > 1 {
			t.Errorf("a page that leads nowhere: %q, %v", ids(page.Entries), err)
		}
	})
}
