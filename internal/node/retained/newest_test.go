package retained

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// checkNewest goes through all pages of a selection, and compares them with a list that is sorted.
func checkNewest(t testing.TB, q *Index, list map[volume.ID]volume.Record, s volume.Selection, atMost int) {
	t.Helper()
	checkPages(t, q, list, newestFirst(list), s, atMost)
}

func newestFirst(list map[volume.ID]volume.Record) []volume.Record {
	return slices.SortedFunc(maps.Values(list), func(a, b volume.Record) int { return b.Key().Compare(a.Key()) })
}

func checkPages(t testing.TB, q *Index, list map[volume.ID]volume.Record, sorted []volume.Record, s volume.Selection, atMost int) {
	t.Helper()
	var want, got []volume.ID
	for _, r := range sorted {
		if r.Phase == volume.Retained && s.Selects(r) {
			want = append(want, r.ID)
		}
	}
	for {
		page, next := q.Newest(s, atMost)
		if len(page) > s.Limit || len(page) > atMost {
			t.Fatalf("%+v: %d volumes, looking at %d", s, len(page), atMost)
		}
		for _, v := range page {
			if r := list[v.ID]; !v.Unpublished.Equal(r.Unpublished) || v.Namespace != r.Namespace || v.Owner != r.Owner {
				t.Fatalf("%+v: got %+v, want %+v", s, v.Record, r)
			}
			got = append(got, v.ID)
		}
		if next.IsZero() {
			break
		}
		if !s.Before.IsZero() && next.Compare(s.Before) >= 0 {
			t.Fatalf("%+v: the next page begins at %v", s, next)
		}
		s.Before = next
	}
	if !slices.Equal(got, want) {
		t.Fatalf("%+v: listed %v\nwant %v", s, got, want)
	}
}

// TestNewestAgainstSort plays churn with thousands of namespaces, and compares lists with one that is sorted. The
// start is in no order, and volumes come in place of others.
func TestNewestAgainstSort(t *testing.T) {
	const many = 16_384
	rng := rand.New(rand.NewPCG(1, 2))
	q, list := &Index{}, map[volume.ID]volume.Record{}
	push := func(i, namespaces int) {
		r := named(i, 1)
		r.Namespace, r.PodName = fmt.Sprintf("team-%d", rng.IntN(namespaces)), fmt.Sprintf("job-%d", rng.IntN(5))
		if rng.IntN(2) == 0 {
			r.PodName += "-x7k2p"
		}
		if rng.IntN(20) == 0 {
			r.Namespace = ""
		}
		r.Unpublished = epoch.Add(time.Duration(rng.IntN(1000)) * time.Second)
		r.Published, r.Owner = epoch.Add(time.Duration(rng.IntN(2))*time.Hour), anyOwner(rng, r.PodName)
		if rng.IntN(10) == 0 {
			r.Phase = volume.Deleting
		}
		q.Put(r)
		list[r.ID] = r
	}
	check := func() {
		t.Helper()
		sorted := newestFirst(list)
		team, now := fmt.Sprintf("team-%d", rng.IntN(3)), &volume.Tenancy{UID: uids[0], Since: epoch.Add(time.Minute)}
		for _, s := range []volume.Selection{
			{}, {Namespace: team}, {Namespace: "team-9000"}, {Namespace: "none"}, {PodName: "job-3", Since: epoch.Add(500 * time.Second)},
			{Namespace: team, Pod: named(rng.IntN(100), 1).Pod}, {Namespace: team, PodName: "job-1"}, {Pod: "other"},
			{Namespace: team, Tenancy: now}, {Tenancy: now}, {Namespace: team, Tenancy: &volume.Tenancy{UID: "none"}},
			{NoNamespace: true}, {NoNamespace: true, Tenancy: now}, {Namespace: "team-9000", Tenancy: now, OwnerKind: "Job"},
			{PodPrefix: "job-"}, {Namespace: team, PodPrefix: "job-3"}, {PodPrefix: "none"},
			{Job: "job"}, {Namespace: team, Job: "job-2"}, {Job: "job-2", Tenancy: now},
			{Namespace: team, Job: "job-2", OwnerKind: "Job"}, {OwnerKind: "Custom", Tenancy: now}, {Namespace: team, Job: "none"},
		} {
			s.Limit = 10_000
			checkPages(t, q, list, sorted, s, 12_000)
		}
		checkHoldings(t, q, list)
	}
	for i := range many {
		push(i, many)
	}
	for i := range 2000 {
		push(many+i, 3)
	}
	for i := range 100 { // the start finds places that are free
		id := named(7*i, 1).ID
		take(q, id)
		delete(list, id)
	}
	check()
	all := slices.Sorted(maps.Keys(list))
	for step := range 3000 {
		switch id := all[rng.IntN(len(all))]; rng.IntN(3) {
		case 0:
			take(q, id)
			delete(list, id)
		case 1:
			push(rng.IntN(len(all)), many)
		case 2:
			push(len(all)+step, 3)
		}
	}
	check()
	for id := range list {
		take(q, id)
	}
	checkEmpty(t, q)
}

// TestPagesWhileVolumesComeAndGo: no volume is in two pages, and none is left out that was there
// all the time.
func TestPagesWhileVolumesComeAndGo(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	q := &Index{}
	stays := map[volume.ID]bool{}
	for i := range 3000 {
		q.Put(named(i, 5))
		stays[named(i, 5).ID] = true
	}
	listed, came := map[volume.ID]bool{}, 3000
	for s := (volume.Selection{Limit: 20}); ; {
		page, next := q.Newest(s, 50)
		for _, v := range page {
			if listed[v.ID] {
				t.Fatalf("%s is listed twice", v.ID)
			}
			listed[v.ID] = true
		}
		if s.Before = next; next.IsZero() {
			break
		}
		for range 10 {
			gone := named(rng.IntN(came), 5)
			take(q, gone.ID)
			delete(stays, gone.ID)
			q.Put(named(came, 5))
			came++
		}
	}
	if len(stays) < 1000 {
		t.Fatalf("only %d volumes stayed", len(stays))
	}
	for id := range stays {
		if !listed[id] {
			t.Errorf("%s is left out", id)
		}
	}
}

// TestNewestGetsOn: a limit that allows nothing does not make a list that has no end.
func TestNewestGetsOn(t *testing.T) {
	q := &Index{}
	for i := range 3 {
		q.Put(named(i, 1))
	}
	var s volume.Selection
	for range 3 {
		page, next := q.Newest(s, 0)
		if len(page) != 1 {
			t.Fatalf("%d volumes", len(page))
		}
		s.Before = next
	}
	if !s.Before.IsZero() {
		t.Errorf("the list goes on at %v", s.Before)
	}
}

// TestAfterAStep: once the index follows a step of the wall clock all times that it returns are as far from now as
// they truly are, those from before the step too; the list has its order by them, and a page begins where the one
// before ended.
func TestAfterAStep(t *testing.T) {
	began := time.Now()
	q := &Index{}
	steps := []time.Duration{0, 100 * time.Hour, -100 * time.Hour}
	published := began.Add(-time.Hour).Truncate(time.Second)
	for i, step := range steps {
		now := stepped{time.Duration(i) * time.Minute, step}.at(began)
		before := q.Changes()
		if q.Follow(now); i > 0 && q.Changes() == before {
			t.Error("a step is no change")
		}
		r := volume.Record{ID: volume.ID('a' + rune(i)), Published: published}.Retain(now, time.Hour)
		q.Put(r)
		before = q.Changes()
		if q.Follow(now.Add(time.Minute)); q.Changes() != before {
			t.Error("without a step there is a change")
		}
	}
	q.Put(volume.Record{ID: "late"}.Retain(stepped{90 * time.Second, 100 * time.Hour}.at(began), time.Hour)) // retained before the last step
	now := stepped{time.Hour, -100 * time.Hour}.at(began)
	q.Follow(now)
	want := map[volume.ID]time.Duration{"a": time.Hour, "b": 59 * time.Minute, "c": 58 * time.Minute, "late": time.Hour - 90*time.Second}
	for id, age := range want {
		got, _ := q.Look(id)
		if is := now.Round(0).Sub(got.Unpublished.Round(0)); (is - age).Abs() > maxStep {
			t.Errorf("%s seems retained for %v, want %v", id, is, age)
		}
		if id != "late" && !got.Published.Equal(published) {
			t.Errorf("%s seems published at %v, which was %v", id, got.Published, published)
		}
	}
	h := q.Holdings()[0]
	if oldest, newest := now.Round(0).Sub(h.Oldest), now.Round(0).Sub(h.Newest); (oldest-time.Hour).Abs() > maxStep ||
		(newest-58*time.Minute).Abs() > maxStep {
		t.Errorf("the oldest seems retained for %v, the newest for %v", oldest, newest)
	}
	if page, _ := q.Newest(volume.Selection{Since: now.Round(0).Add(-59*time.Minute - 15*time.Second), Limit: 9}, 9); len(page) != 3 {
		t.Errorf("%d volumes are newer than 59m15s, want 3", len(page))
	}
	var ids []volume.ID
	for s := (volume.Selection{Limit: 1}); ; {
		page, next := q.Newest(s, 1)
		for _, v := range page {
			ids = append(ids, v.ID)
		}
		if s.Before = next; next.IsZero() {
			break
		}
	}
	if !slices.Equal(ids, []volume.ID{"c", "late", "b", "a"}) {
		t.Errorf("listed %v", ids)
	}
}

func BenchmarkNewest(b *testing.B) {
	const size = 1_000_000
	for _, namespaces := range []int{1, 100, 8000} {
		var q Index
		for i := range size {
			q.Put(named(i, namespaces))
		}
		middle := named(size/2, namespaces).Key()
		for name, s := range map[string]volume.Selection{
			"first page":         {Namespace: "team-0", Limit: 500},
			"page in the middle": {Namespace: "team-0", Before: middle, Limit: 500},
			"pod":                {Namespace: "team-0", PodName: "none", Limit: 500},
			"all":                {Limit: 500},
			"all in the middle":  {Limit: 500, Before: middle},
		} {
			b.Run(fmt.Sprintf("%d/%s", namespaces, name), func(b *testing.B) {
				for b.Loop() {
					q.Newest(s, 1000)
				}
			})
		}
	}
}
