package retained

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// uids are those of two namespaces that had the same name, one after the other.
var uids = [...]string{"76543210-89ab-cdef-0123-456789abcdef", "an earlier one"}

// anyOwner returns an owner that a pod may have.
func anyOwner(rng *rand.Rand, podName string) volume.Owner {
	one := func(of ...string) string { return of[rng.IntN(len(of))] }
	switch rng.IntN(4) {
	case 0:
		return volume.Owner{}
	case 1:
		return volume.Owner{Verdict: volume.Denied}
	}
	begin := podName[:rng.IntN(len(podName)+1)]
	o := volume.Owner{Verdict: volume.Confirmed, NamespaceUID: uids[rng.IntN(len(uids))],
		Kind: one("", "Job", "Custom", "StatefulSet", strings.Repeat("K", 253)), Name: one("", "job", begin, podName, begin+"other", podName+"x"),
		UID: one("", kubeletPod, "uid", strings.ToUpper(kubeletPod)), JobIndex: one("", "0", "123")}
	o.Job = one("", o.Name, "job", begin, podName)
	return o
}

// TestHoldings: of each namespace and each of its UIDs, newest and oldest by the wall clock.
func TestHoldings(t *testing.T) {
	q := &Index{}
	if got := q.Holdings(); len(got) != 0 {
		t.Errorf("an empty queue holds %v", got)
	}
	changes := q.Changes()
	put := func(id, namespace string, after time.Duration, o volume.Owner) volume.Record {
		r := retained(id, after, time.Hour)
		r.Namespace, r.Owner = namespace, o
		q.Put(r)
		if now := q.Changes(); now == changes {
			t.Errorf("%s came, and nothing has changed", id)
		} else {
			changes = now
		}
		return r
	}
	confirmed := func(uid string) volume.Owner { return volume.Owner{Verdict: volume.Confirmed, NamespaceUID: uid} }
	list := map[volume.ID]volume.Record{}
	for _, r := range []volume.Record{
		put("a", "ci", 3, confirmed("new")), put("b", "ci", 1, confirmed("new")), put("c", "ci", 2, confirmed("new")),
		put("d", "ci", 0, confirmed("old")), put("e", "ci", 9, volume.Owner{}), put("f", "ci", 5, volume.Owner{Verdict: volume.Denied}),
		put("g", "", 4, volume.Owner{}), put("h", "db", 4, confirmed("new")),
	} {
		list[r.ID] = r
	}
	checkHoldings(t, q, list)
	q.Look("a")
	q.Newest(volume.Selection{Limit: 10}, 10)
	if q.Changes() != changes {
		t.Error("to look is no change")
	}
	for id := range list {
		take(q, id)
		delete(list, id)
		checkHoldings(t, q, list)
		if now := q.Changes(); now == changes {
			t.Errorf("%s went, and nothing has changed", id)
		} else {
			changes = now
		}
	}
}

// checkHoldings compares the holdings with those of a plain list.
func checkHoldings(t testing.TB, q *Index, list map[volume.ID]volume.Record) {
	t.Helper()
	type key struct {
		namespace, uid string
		verdict        volume.Verdict
	}
	want := map[key]volume.Holding{}
	for _, r := range list {
		if r.Phase != volume.Retained {
			continue
		}
		k := key{r.Namespace, r.Owner.NamespaceUID, r.Owner.Verdict}
		h := want[k]
		h.Namespace, h.NamespaceUID, h.Verdict = k.namespace, k.uid, k.verdict
		if h.Volumes++; h.Newest.Before(r.Unpublished) {
			h.Newest = r.Unpublished
		}
		if h.Oldest.IsZero() || r.Unpublished.Before(h.Oldest) {
			h.Oldest = r.Unpublished
		}
		want[k] = h
	}
	got := q.Holdings()
	for _, h := range got {
		k := key{h.Namespace, h.NamespaceUID, h.Verdict}
		if w := want[k]; h.Volumes != w.Volumes || !h.Newest.Equal(w.Newest) || !h.Oldest.Equal(w.Oldest) {
			t.Fatalf("holds %+v, want %+v", h, w)
		}
		delete(want, k)
	}
	if len(want) > 0 {
		t.Fatalf("does not hold %v", want)
	}
	byName := func(a, b volume.Holding) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.NamespaceUID, b.NamespaceUID), cmp.Compare(a.Verdict, b.Verdict))
	}
	if slices.SortFunc(got, byName); len(slices.CompactFunc(got, func(a, b volume.Holding) bool { return byName(a, b) == 0 })) != len(got) {
		t.Fatalf("holds a namespace twice: %v", got)
	}
}
