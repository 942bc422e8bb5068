package fleet

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/resource"
	"github.com/katbox/katbox/internal/model/volume"
)

// heavy is a volume with texts as long as a node may say them, each made of one character.
func heavy(id, char string) api.Volume {
	name, owner := strings.Repeat("a", 253), strings.Repeat(char, 253)
	at, size := epoch, int64(1<<59)
	return api.Volume{
		ID: id, Namespace: name[:63], Pod: name, PodUID: name, Volume: name[:63], ServiceAccount: name, Node: name, Phase: "Retained",
		Owner: &api.Owner{
			Verdict: "Confirmed", NamespaceUID: owner, Kind: owner, Name: owner, UID: owner, Job: owner, JobIndex: owner,
		},
		PublishedAt: &at, RetainedAt: &at, ExpiresAt: &at, MayGoEarlier: true, Bytes: &size, Inodes: &size, Outcome: "Succeeded",
		Terms: &api.Terms{
			Lifespan: owner[:64], LifespanSucceeded: owner[:64], Retain: "OnFailure", LimitBytes: mostSize, LimitInodes: mostSize,
		},
		Hold: &api.Hold{Kind: "Pinned", Until: epoch, By: owner, Why: strings.Repeat(char, 1024)},
	}
}

// TestWeightIsReal: no entry is longer than its weight, in whatever form it is answered, and none weighs much more
// than it is long.
func TestWeightIsReal(t *testing.T) {
	plain := describe(record("v1", 1), "n1")
	guessed := plain
	guessed.Owner, guessed.Pod = nil, strings.Repeat("a", 247)+"-abcde"
	claim := heavy("v2", "x")
	claim.Pod, claim.PodUID, claim.Claim = "", "", strings.Repeat("c", 253)
	array := claim
	array.Array = &api.Array{Pool: strings.Repeat("p", 253), Class: strings.Repeat("c", 253), Block: true, Size: "1000000Gi"}
	gone := &api.GoneVolume{
		Volume: heavy("v3", `"`), GoneAt: epoch, Reason: strings.Repeat("r", 64), Promised: strings.Repeat("p", 64),
		Kept: strings.Repeat("k", 64), Early: true, By: strings.Repeat("b", 253), Why: strings.Repeat(`\`, 1024),
	}
	for name, e := range map[string]*Entry{
		"a usual one": {Volume: plain}, "guessed": {Volume: guessed}, "a claim's": {Volume: claim}, "on an array": {Volume: array},
		"heavy": {Volume: heavy("v4", "<")}, "quotes": {Volume: heavy("v5", `"`)},
		"gone": {Volume: gone.Volume, Gone: gone}, "foreign": {Volume: heavy("v7", "x"), Foreign: true},
	} {
		v := resource.From(e.Volume, home, e.Foreign)
		if e.Gone != nil {
			v = resource.FromGone(*e.Gone, home, e.Foreign)
		}
		table := resource.Table(metav1.ListMeta{}, []resource.RetainedVolume{v}, e.Gone != nil, metav1.IncludeObject, epoch)
		object, err := api.Encode(v)
		row, err2 := api.Encode(table.Rows[0])
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		if w := e.weight(); w < len(object) || w < len(row) || w > 2*len(row) {
			t.Errorf("%s: it weighs %d, is %d bytes long, and in a table %d", name, w, len(object), len(row))
		}
	}
}

// TestHeavyEntries: volumes of a tenant with texts as long as they can be take no more memory than a page has room
// for, and the pages that follow have all others: none is listed twice, or left out.
func TestHeavyEntries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var nodes fakeNodes
		want := map[string]bool{}
		for i := range 3 {
			n := node(fmt.Sprintf("n%d", i))
			for j := range 1600 {
				id := fmt.Sprintf("v%d-%d", i, j)
				n.volumes, want[id] = append(n.volumes, record(id, 5000-3*j-i)), true
			}
			n.after = func(_ api.Query, l *api.VolumeList) {
				for k := range l.Items {
					if v := &l.Items[k]; k%2 == 0 { // between others
						v.Owner = heavy("", "x").Owner
						v.Owner.NamespaceUID = "ci-2"
					}
				}
			}
			nodes.nodes = append(nodes.nodes, n)
		}
		f, dropped := newFleet(t, &nodes, nil)
		pages := all(t, f, Request{Reader: tenant, Namespace: "ci", Limit: 5000})
		for i, page := range pages {
			sum := 0
			for _, e := range page.Entries {
				sum += e.weight()
				if !want[e.Volume.ID] {
					t.Fatalf("page %d: %s is listed twice", i, e.Volume.ID)
				}
				delete(want, e.Volume.ID)
			}
			if sum > mostBytes || len(page.Entries) == 0 {
				t.Errorf("page %d has %d entries of %d bytes", i, len(page.Entries), sum)
			}
		}
		if len(want) > 0 || len(pages) < 2 || dropped() > 0 {
			t.Errorf("%d pages, %d volumes are in none, %d were dropped", len(pages), len(want), dropped())
		}
	})
}

// TestNewestInBytes: where texts are long, no entry that is newer than one that is kept is left out.
func TestNewestInBytes(t *testing.T) {
	n := newest{limit: 100_000}
	for i := range 20_000 {
		v := describe(record(fmt.Sprint("v", i), i*7919%20_000), "n1")
		if i%2 == 0 {
			v.Hold = &api.Hold{By: "jane", Why: longest}
		}
		n.add(&Entry{Volume: v})
		if n.bytes > mostBytes {
			t.Fatalf("%d entries of %d bytes are kept", len(n.kept), n.bytes)
		}
	}
	n.sort()
	for i := range n.kept {
		at := epoch.Add(time.Duration(19_999-i) * time.Second)
		if got := n.at(i).Volume.RetainedAt; !got.Equal(at) {
			t.Fatalf("entry %d is of %v, want %v", i, got, at)
		}
	}
	if n.out == nil || !n.full() || len(n.kept) < 2000 {
		t.Errorf("%d entries are kept, full %t", len(n.kept), n.full())
	}
}

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
