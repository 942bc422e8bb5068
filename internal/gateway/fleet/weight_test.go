package fleet

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/katbox/katbox/internal/api"
	"github.com/katbox/katbox/internal/volume"
)

// longest is the longest reason that a person can give.
var longest = strings.Repeat("<", 1024)

// bytesOf is how long entries are in JSON.
func bytesOf(t *testing.T, entries []Entry) (sum int) {
	t.Helper()
	for i := range entries {
		text, err := api.Encode(&entries[i])
		if err != nil {
			t.Fatal(err)
		}
		sum += len(text)
		if h := entries[i].Volume.Hold; h != nil {
			sum += len(h.Why) // it is in the spec, too
		}
	}
	return sum
}

// TestLongReasons: a page of volumes with long reasons ends before it is too long, and the next one goes on
// behind it: nothing is listed twice, or left out.
func TestLongReasons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var nodes fakeNodes
		want := map[string]bool{}
		for i := range 3 {
			n := node(fmt.Sprintf("n%d", i))
			for j := range 1000 {
				id := fmt.Sprintf("v%d-%d", i, j)
				n.volumes, want[id] = append(n.volumes, record(id, 5000-3*j-i)), true
			}
			n.after = func(_ api.Query, l *api.VolumeList) {
				for k := range l.Items {
					l.Items[k].Hold = &api.Hold{Kind: "Pinned", Until: epoch, By: "jane", Why: longest}
				}
			}
			nodes.nodes = append(nodes.nodes, n)
		}
		f, _ := newFleet(t, &nodes, nil)
		pages, next := 0, ""
		for ; pages == 0 || next != ""; pages++ {
			page, err := f.List(t.Context(), Request{Reader: tenant, Namespace: "ci", Limit: 5000, Continue: next})
			if err != nil {
				t.Fatal(err)
			}
			if sum := bytesOf(t, page.Entries); sum > mostBytes || len(page.Entries) == 0 {
				t.Errorf("page %d has %d entries of %d bytes, more than %d", pages, len(page.Entries), sum, mostBytes)
			}
			for _, e := range page.Entries {
				if !want[e.Volume.ID] {
					t.Fatalf("page %d: %s is listed twice", pages, e.Volume.ID)
				}
				delete(want, e.Volume.ID)
			}
			next = page.Continue
		}
		if len(want) > 0 || pages != 2 {
			t.Errorf("%d pages, and %d volumes are in none", pages, len(want))
		}
	})
}

// TestLongReasonsOfGone: the one page of what is gone ends before it is too long, and says that there is more.
func TestLongReasonsOfGone(t *testing.T) {
	n := node("n1")
	for i := range 4999 { // as bury does it, and faster
		n.gone = append(n.gone, volume.Tombstone{
			Number: uint64(4999 - i), Record: record(fmt.Sprintf("v%d", 4998-i), 1),
			Gone: epoch.Add(time.Duration(4999-i) * time.Second), Kept: time.Hour, Reason: volume.ForBytes,
		})
	}
	n.afterGone = func(_ api.GoneQuery, l *api.GoneList) {
		for i := range l.Items {
			l.Items[i].By, l.Items[i].Why = "jane", longest
		}
	}
	f, _ := newFleet(t, &fakeNodes{nodes: []*fakeNode{n}}, nil)
	page, err := f.Gone(t.Context(), Request{Reader: everyone, Limit: 5000})
	if sum := bytesOf(t, page.Entries); err != nil || sum > mostBytes || len(page.Entries) < 3000 || page.Entries[0].Volume.ID != "v4998" {
		t.Errorf("%d entries of %d bytes, the first %v, %v", len(page.Entries), sum, page.Entries[:min(1, len(page.Entries))], err)
	}
	if len(page.Warnings) != 1 || !strings.Contains(page.Warnings[0], fmt.Sprintf("the last %d volumes", len(page.Entries))) {
		t.Errorf("the warnings are %q", page.Warnings)
	}
}

// TestOneEntryFits: a page makes headway, however long an entry is.
func TestOneEntryFits(t *testing.T) {
	huge := &Entry{Volume: api.Volume{Hold: &api.Hold{Why: strings.Repeat("x", mostBytes)}}}
	at := func(int) *Entry { return huge }
	if a, b, c := fitting(0, at), fitting(1, at), fitting(5, at); a != 0 || b != 1 || c != 1 {
		t.Errorf("of 0, 1 and 5 entries %d, %d and %d fit", a, b, c)
	}
}
