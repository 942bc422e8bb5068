package fleet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
)

// fakeArchive has volumes by the UID of their namespace.
type fakeArchive struct {
	parts map[string]*archivedPart
	// away is why it does not answer.
	away error
	// exists are the UIDs of namespaces that exist.
	exists []string
}

// archivedPart has the archived volumes of a namespace. They were on a node.
type archivedPart struct {
	*fakeNode
	archive *fakeArchive
	// on are the nodes, by ID.
	on map[string]string
}

func (p *archivedPart) Node() string { return Archived }

func (p *archivedPart) List(ctx context.Context, by Reader, q api.Query) (api.VolumeList, error) {
	if p.archive.away != nil {
		return api.VolumeList{}, p.archive.away
	}
	list, err := p.fakeNode.List(ctx, by, q)
	for i := range list.Items {
		v := &list.Items[i]
		v.Node, v.Phase, v.Archived = p.on[v.ID], api.PhaseArchived, "key of "+v.ID
	}
	return list, err
}

// archived returns an archive with volumes of namespaces, each of which was on a node.
func archivedOn(node string, records ...volume.Record) *fakeArchive {
	a := &fakeArchive{parts: map[string]*archivedPart{}, exists: []string{"ci-2", "home"}}
	for _, r := range records {
		uid := r.Owner.NamespaceUID
		if a.parts[uid] == nil {
			a.parts[uid] = &archivedPart{&fakeNode{name: Archived}, a, map[string]string{}}
		}
		a.parts[uid].add(r)
		a.parts[uid].on[string(r.ID)] = node
	}
	return a
}

func (a *fakeArchive) With(w Where) (parts []Node) {
	for uid, part := range a.parts {
		if w.All || uid == w.UID || w.Name != "" && !slices.Contains(a.exists, uid) {
			parts = append(parts, part)
		}
	}
	return parts
}

func (a *fakeArchive) Find(ctx context.Context, w Where, name string) (api.Volume, error) {
	for _, part := range a.With(w) {
		list, err := part.List(ctx, Reader{}, api.Query{Limit: 1000})
		if err != nil {
			return api.Volume{}, err
		}
		for _, v := range list.Items {
			if v.Node+"/"+v.ID == name {
				return v, nil
			}
		}
	}
	return api.Volume{}, ErrNotFound
}

func (a *fakeArchive) Missing() (Missing, bool) {
	return Missing{Node: Archived, Reason: NotListed}, a.away != nil
}

// withArchive returns a Fleet with an archive.
func withArchive(t *testing.T, nodes *fakeNodes, a *fakeArchive, owners fakeOwners) (f *Fleet, dropped func() int) {
	f, dropped = newFleet(t, nodes, owners)
	f.cfg.Archive = a
	return f, dropped
}

// phases are the IDs of some entries, those of archived ones with a plus.
func phases(entries []Entry) string {
	var text []string
	for _, e := range entries {
		id := e.Volume.ID
		if e.Volume.Phase == api.PhaseArchived {
			id += "+"
		}
		text = append(text, id)
	}
	return strings.Join(text, " ")
}

// TestArchivedAreListedOnce: as the node says while it has them, also where its clock was adjusted, and in their place afterwards.
func TestArchivedAreListedOnce(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	for range 200 {
		nodes, a := &fakeNodes{}, &fakeArchive{parts: map[string]*archivedPart{}}
		part := &archivedPart{&fakeNode{name: Archived}, a, map[string]string{}}
		a.parts["ci-2"] = part
		want := map[string]bool{}
		for n := range 3 {
			on := node(fmt.Sprint("n", n))
			nodes.nodes = append(nodes.nodes, on)
			for i := range random.IntN(8) {
				r := record(fmt.Sprint(on.name, "-", i), random.IntN(12))
				has, copied := random.IntN(3) > 0, random.IntN(3) > 0
				if has {
					on.add(r)
				}
				if copied {
					part.add(r)
					part.on[string(r.ID)] = on.name
				}
				if has || copied {
					want[string(r.ID)] = has
				}
			}
		}
		f, dropped := withArchive(t, nodes, a, nil)
		for _, reader := range []Reader{tenant, everyone} {
			for _, limit := range []int{1, 2, 3, 100} {
				seen := map[string]bool{}
				var last *Entry
				for _, page := range all(t, f, Request{Reader: reader, Namespace: "ci", Limit: limit}) {
					for _, e := range page.Entries {
						id := e.Volume.ID
						if has, ok := want[id]; !ok || seen[id] || has == (e.Volume.Phase == api.PhaseArchived) || e.Foreign {
							t.Fatalf("limit %d: %+v, which a node has: %t; seen %t", limit, e.Volume, has, seen[id])
						}
						if last != nil && compare(last, &e) <= 0 {
							t.Fatalf("limit %d: %s after %s", limit, id, last.Volume.ID)
						}
						seen[id], last = true, &e
					}
				}
				if len(seen) != len(want) || dropped() != 0 {
					t.Fatalf("limit %d: %d of %d, %d dropped", limit, len(seen), len(want), dropped())
				}
			}
		}
	}
	// A clock that was adjusted: in one page it is one volume.
	moved := record("a", 5)
	moved.Unpublished = moved.Unpublished.Add(-2 * time.Second)
	nodes := &fakeNodes{nodes: []*fakeNode{node("n1", record("a", 5), record("b", 4))}}
	f, _ := withArchive(t, nodes, archivedOn("n1", moved, record("c", 1)), nil)
	page, err := f.List(t.Context(), Request{Reader: tenant, Namespace: "ci"})
	if err != nil || phases(page.Entries) != "a b c+" {
		t.Errorf("%s, %v", phases(page.Entries), err)
	}
}

// TestArchiveAttacks: rights come from the key. Neither a namespace that was made again, nor a node that says it has the volume,
// nor what the gateway remembers of a pod changes that.
func TestArchiveAttacks(t *testing.T) {
	former := record("former", 1)
	former.Owner.NamespaceUID = "ci-1"
	foreign := record("foreign", 2)
	foreign.Namespace, foreign.Owner.NamespaceUID = "ci", "other" // the text says ci
	a := archivedOn("n1", record("mine", 3), former, foreign)
	// Another node says that it has the volume, and one that it is of the reader's namespace.
	liar := node("liar", record("mine", 3), record("foreign", 2))
	nodes := &fakeNodes{nodes: []*fakeNode{node("n1"), liar}}
	owners := fakeOwners{{"pod-foreign", "n1"}: {Verdict: "Confirmed", NamespaceUID: "ci-2"}, {"pod-mine", "n1"}: {Verdict: "Denied"}}
	f, _ := withArchive(t, nodes, a, owners)
	for _, tt := range []struct {
		reader    Reader
		namespace string
		want      string
	}{
		{tenant, "ci", "mine+@n1 mine@liar foreign@liar"},
		{tenant, "deleted", ""},
		{everyone, "ci", "mine+@n1 mine@liar foreign+@n1 foreign@liar former+@n1"},
		{everyone, "", "mine+@n1 mine@liar foreign+@n1 foreign@liar former+@n1"},
	} {
		page, err := f.List(t.Context(), Request{Reader: tt.reader, Namespace: tt.namespace})
		var got []string
		for _, e := range page.Entries {
			text := phases([]Entry{e}) + "@" + e.Volume.Node
			if e.Volume.Phase == api.PhaseArchived && e.Foreign == (e.Volume.Owner.NamespaceUID == "ci-2") {
				t.Errorf("%s: foreign %t", text, e.Foreign)
			}
			got = append(got, text)
		}
		if err != nil || strings.Join(got, " ") != tt.want {
			t.Errorf("%s in %q: %q, %v, want %q", tt.reader.User, tt.namespace, got, err, tt.want)
		}
	}
	find := func(reader Reader, id string) error {
		l := lookup(reader, "ci", "n1", "pod-"+id, id)
		l.Name = "n1/" + id
		found, err := f.Find(t.Context(), l)
		if err == nil && (found.Volume.Phase != api.PhaseArchived || found.Node.Node() != Archived) {
			t.Errorf("%s: %+v", id, found)
		}
		return err
	}
	for id, visible := range map[string]bool{"mine": true, "former": false, "foreign": false, "none": false} {
		if err := find(tenant, id); (err == nil) != visible || err != nil && !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %v", id, err)
		}
		if err := find(everyone, id); (err == nil) != (id != "none") {
			t.Errorf("%s, for everyone: %v", id, err)
		}
	}
}

// TestFindInArchive: once the node does not have the volume, or cannot be asked; and what is said while the bucket is away.
func TestFindInArchive(t *testing.T) {
	there := record("there", 1)
	both := record("both", 2)
	nodes := &fakeNodes{nodes: []*fakeNode{node("n1", both)}, missing: []Missing{{Node: "n2", Reason: NotConnected}}}
	a := archivedOn("n1", there, both)
	gone := record("gone", 3)
	a.parts["ci-2"].add(gone)
	a.parts["ci-2"].on["gone"] = "n2"
	f, _ := withArchive(t, nodes, a, nil)
	find := func(on, id string) (Found, error) {
		l := lookup(tenant, "ci", on, "pod-"+id, id)
		l.Name = on + "/" + id
		return f.Find(t.Context(), l)
	}
	for _, tt := range []struct{ on, id, phase string }{
		{"n1", "both", "Retained"}, {"n1", "there", api.PhaseArchived}, {"n2", "gone", api.PhaseArchived},
	} {
		if found, err := find(tt.on, tt.id); err != nil || found.Volume.Phase != tt.phase || (found.Away != nil) != (tt.on == "n2") {
			t.Errorf("%s: %+v, %v", tt.id, found, err)
		}
	}
	away := (*NotConnectedError)(nil)
	if _, err := find("n2", "none"); !errors.As(err, &away) {
		t.Errorf("on a node that is away, and not in the archive: %v", err)
	}
	a.away = errBroken
	if found, err := find("n1", "both"); err != nil || found.Volume.Phase != "Retained" {
		t.Errorf("%+v, %v", found, err)
	}
	if _, err := find("n1", "there"); !errors.Is(err, ErrArchive) || errors.Is(err, ErrNotFound) {
		t.Errorf("not on its node, and the bucket is away: %v", err)
	}
	if _, err := find("n2", "gone"); !errors.As(err, &away) {
		t.Errorf("the node is away, and the bucket: %v", err)
	}
}

// TestArchiveAway: a list is made without it, and says so; with no node at all, the archive is enough.
func TestArchiveAway(t *testing.T) {
	nodes := &fakeNodes{nodes: []*fakeNode{node("n1", record("a", 1))}}
	a := archivedOn("n1", record("b", 0))
	f, _ := withArchive(t, nodes, a, nil)
	a.away = errBroken
	page, err := f.List(t.Context(), Request{Reader: tenant, Namespace: "ci"})
	if err != nil || phases(page.Entries) != "a" || len(page.Fleet.Missing) != 1 || page.Fleet.Missing[0].Node != Archived ||
		!slices.Equal(page.Warnings, []string{"the archive did not answer; its volumes are not in this list"}) ||
		page.Fleet.Nodes != 1 || page.Fleet.Asked != 1 || page.Fleet.Answered != 1 {
		t.Errorf("%s, %+v, %q, %v", phases(page.Entries), page.Fleet, page.Warnings, err)
	}
	nodes.missing = []Missing{{Node: "n2", Reason: NotConnected}}
	page, err = f.List(t.Context(), Request{Reader: tenant, Namespace: "ci"})
	if want := "1 of 2 nodes and the archive did not answer (n2); their volumes are not in this list"; err != nil ||
		!slices.Equal(page.Warnings, []string{want}) {
		t.Errorf("%q, %v; want %q", page.Warnings, err, want)
	}
	a.away = nil
	nodes.nodes, nodes.missing = nil, []Missing{{Node: "n1", Reason: NotConnected}}
	page, err = f.List(t.Context(), Request{Reader: tenant, Namespace: "ci"})
	if err != nil || phases(page.Entries) != "b+" || len(page.Fleet.Missing) != 1 || page.Fleet.Missing[0].Node != "n1" {
		t.Errorf("%s, %+v, %v", phases(page.Entries), page.Fleet, err)
	}
	// No node can be asked, and it is not known what the bucket has.
	unknown, _ := withArchive(t, nodes, &fakeArchive{away: errBroken}, nil)
	for what, look := range map[string]func(context.Context, Request) (Page, error){"list": unknown.List, "gone": f.Gone} {
		alone := (*NotConnectedError)(nil)
		if page, err := look(t.Context(), Request{Reader: everyone}); !errors.As(err, &alone) {
			t.Errorf("%s: %+v, %v", what, page.Fleet, err)
		}
	}
	if _, err := f.Search(t.Context(), SearchRequest{Request: Request{Reader: everyone}}); err == nil {
		t.Error("a search of no node")
	}
	// What cannot be an archived volume is left out, and counted.
	f2, dropped := withArchive(t, &fakeNodes{}, a, nil)
	a.parts["ci-2"].on["b"] = ""
	if page, err = f2.List(t.Context(), Request{Reader: tenant, Namespace: "ci"}); err != nil || len(page.Entries) != 0 || dropped() != 1 {
		t.Errorf("%s, %d dropped, %v", phases(page.Entries), dropped(), err)
	}
	// A list of what is gone asks nodes alone.
	if _, err := f2.Gone(t.Context(), Request{Reader: tenant, Namespace: "ci"}); err != nil {
		t.Error(err)
	}
}
