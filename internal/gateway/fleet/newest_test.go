package fleet

import (
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/api"
)

// TestACopyThatIsMuchOlder: a node that says an archived volume was retained long ago hides no other volume.
func TestACopyThatIsMuchOlder(t *testing.T) {
	entry := func(id string, seconds int, key string) *Entry {
		at := epoch.Add(time.Duration(seconds) * time.Second)
		return &Entry{Volume: api.Volume{ID: id, Node: "n1", RetainedAt: &at, Archived: key}}
	}
	n := newest{limit: 2, copies: map[copyOf]*Entry{}}
	for i, id := range []string{"c", "b", "a"} {
		n.add(entry(id, i, "key"))
	}
	if n.add(entry("b", -1e9, "")) || len(n.kept) != 1 || n.kept[0].Volume.ID != "a" || n.out.Volume.ID != "c" || len(n.copies) != 1 ||
		n.bytes != n.kept[0].weight() {
		t.Errorf("%d are kept, and the newest that is not is %+v", len(n.kept), n.out)
	}
	// What is newer than the end of the page still counts as the node says.
	if !n.add(entry("a", 1, "")) || len(n.kept) != 1 || n.kept[0].Volume.Archived != "" || n.out.Volume.ID != "c" {
		t.Errorf("%+v", n.kept)
	}
}

// TestLiesAboutTheAge: page after page, all volumes of others are listed, whatever a node says of when its archived ones were retained.
func TestLiesAboutTheAge(t *testing.T) {
	for _, limit := range []int{1, 2, 3} {
		for range 20 { // what answers first is chance
			a := archivedOn("n1", record("f", 6), record("d", 4), record("c", 3), record("a", 1))
			a.parts["ci-2"].add(record("e", 5))
			a.parts["ci-2"].add(record("b", 2))
			a.parts["ci-2"].on["e"], a.parts["ci-2"].on["b"] = "liar", "liar"
			f, _ := withArchive(t, &fakeNodes{nodes: []*fakeNode{node("n1"), node("liar", record("e", -1e9), record("b", -2e9))}}, a, nil)
			seen := map[string]bool{}
			for _, page := range all(t, f, Request{Reader: tenant, Namespace: "ci", Limit: limit}) {
				for _, e := range page.Entries {
					seen[e.Volume.ID] = true
				}
			}
			if len(seen) != 6 {
				t.Fatalf("limit %d: %v", limit, seen)
			}
		}
	}
}
