package retained

import (
	"cmp"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/lifespan"
	"github.com/katbox/katbox/internal/model/volume"
)

// FuzzIndex does what the bytes say, three for each step, to a queue and to a plain list, and
// compares them.
func FuzzIndex(f *testing.F) {
	f.Add([]byte{0, 1, 1, 1, 2, 2, 20, 3, 1, 30, 4, 4, 3, 0, 0, 2, 1, 0, 3, 0, 0}, 0.5)
	f.Add([]byte{0, 1, 1, 0, 73, 2, 0, 138, 3, 0, 203, 4, 3, 33, 2, 3, 97, 0, 3, 128, 0}, 0.5)
	f.Add([]byte{0, 1, 1, 7, 0, 0, 4, 9, 1, 8, 18, 1, 12, 25, 0, 7, 0, 0, 3, 1, 9, 11, 10, 2}, 0.5)
	f.Fuzz(func(t *testing.T, steps []byte, factor float64) {
		if !(factor >= 0 && factor <= 1) {
			return
		}
		lifespans := []time.Duration{0, 1, time.Hour, math.MaxInt64/2 - 1, math.MaxInt64 / 2}
		q := &Index{}
		list := map[volume.ID]volume.Record{}
		for ; len(steps) >= 3; steps = steps[3:] {
			id := volume.ID("v" + string('0'+steps[1]%8))
			switch steps[0] % 4 {
			case 0, 1:
				r := retained(string(id), time.Duration(steps[2]), lifespans[int(steps[0]/4)%len(lifespans)])
				r.Namespace = []string{"", "a", "b"}[steps[1]/8%3]
				if steps[0]%4 == 1 {
					r.Phase = volume.Deleting
				}
				r.Owner = []volume.Owner{{}, {Verdict: volume.Denied}, {Verdict: volume.Confirmed, NamespaceUID: uids[0], Kind: "Job"},
					{Verdict: volume.Confirmed, NamespaceUID: uids[1]}}[steps[1]/64]
				if steps[2]%2 == 1 {
					r.Published = epoch.Add(time.Duration(steps[2]) * time.Second)
				}
				q.Put(r)
				list[id] = r
			case 2:
				got, ok := take(q, id)
				want, known := list[id]
				if ok != known || !got.Unpublished.Equal(want.Unpublished) {
					t.Fatalf("took %+v, %t, want %+v", got, ok, want)
				}
				delete(list, id)
			case 3:
				s := volume.Selection{Namespace: []string{"", "a", "b", "c"}[steps[1]%4], Limit: 1 + int(steps[0]/4%3)}
				if steps[1]/4%2 == 1 {
					s.Since = epoch.Add(time.Duration(steps[2]))
				}
				if steps[1]/32%2 == 1 {
					s.Tenancy = &volume.Tenancy{UID: uids[0], Since: epoch.Add(time.Duration(steps[2]) * time.Second)}
				}
				if steps[1]/64%2 == 1 {
					s.OwnerKind = "Job"
				}
				s.NoNamespace = steps[1]/128 == 1
				checkNewest(t, q, list, s, 1+int(steps[1]/8%4))
				checkHoldings(t, q, list)
			}
			checkNext(t, q, list, factor)
		}
	})
}

// checkNext compares the head of a queue with the least of a list.
func checkNext(t *testing.T, q *Index, list map[volume.ID]volume.Record, factor float64) {
	t.Helper()
	var all []volume.Record
	for _, r := range list {
		all = append(all, r)
	}
	deadline, ok := nextDue(q, factor)
	if q.Len() != len(all) || ok != (len(all) > 0) {
		t.Fatalf("%d volumes and next %t, want %d", q.Len(), ok, len(all))
	}
	if !ok {
		return
	}
	due := func(r volume.Record) time.Time {
		if r.Phase == volume.Deleting {
			return r.Unpublished
		}
		return lifespan.Deadline(r.Unpublished, r.Lifespan, factor)
	}
	want := slices.MinFunc(all, func(a, b volume.Record) int {
		return cmp.Or(due(a).Compare(due(b)), a.Unpublished.Compare(b.Unpublished), cmp.Compare(a.ID, b.ID))
	})
	got, ok := takeNext(q, factor)
	if !ok || got.ID != want.ID || !deadline.Equal(due(want)) {
		t.Fatalf("next is %s at %v, want %s at %v", got.ID, deadline, want.ID, due(want))
	}
	q.Put(got.Record)
}

// FuzzNames looks for names that do not come back, and for a name that is found in place of
// another.
func FuzzNames(f *testing.F) {
	f.Add(kubeletID, kubeletPod, "job-1", "v")
	f.Add("csi-", strings.Repeat("-", 36), "", "csi-0")
	f.Add(string(volume.KubeletID(kubeletPod, "v")), kubeletPod, "job-1", "v")
	f.Fuzz(func(t *testing.T, id, pod, podName, other string) {
		x := &Index{}
		want := volume.Record{ID: volume.ID(id), Pod: volume.PodUID(pod), PodName: podName, VolumeName: other}.Retain(epoch, time.Hour)
		x.Put(want)
		if got, ok := x.Look(volume.ID(id)); !ok || !reflect.DeepEqual(got.Record, want) {
			t.Errorf("%+v came back as %+v", want, got)
		}
		if _, found := x.Look(volume.ID(other)); found != (other == id) {
			t.Errorf("looked for %q, found %t, and there is %q", other, found, id)
		}
	})
}

// FuzzOwners looks for an owner that does not come back whole, beside texts that follow it.
func FuzzOwners(f *testing.F) {
	f.Add("nightly-29000000-x7k2p", uids[0], "Job", "nightly-29000000", uids[1], "nightly-29000000", "17")
	f.Add("p", "", "Custom", "", "not a UUID", "job", "")
	f.Add("", "", "", "", "", "", "")
	f.Fuzz(func(t *testing.T, podName, namespaceUID, kind, name, uid, job, index string) {
		confirmed := volume.Owner{
			Verdict: volume.Confirmed, NamespaceUID: namespaceUID, Kind: kind, Name: name, UID: uid, Job: job, JobIndex: index,
		}
		x := &Index{}
		for _, owner := range []volume.Owner{confirmed, {}, {Verdict: volume.Denied}} {
			want := volume.Record{ID: "v", Pod: "p", PodName: podName, Owner: owner}.Retain(epoch, time.Hour)
			x.Put(want)
			if got, _ := x.Look("v"); !reflect.DeepEqual(got.Record, want) {
				t.Errorf("%+v came back as %+v", want, got.Record)
			}
			for _, s := range []volume.Selection{
				{Job: job}, {OwnerKind: kind}, {Job: strings.TrimSuffix(podName, "-x7k2p")},
				{Job: name}, {Job: job + "x"}, {OwnerKind: name}, {PodPrefix: name},
			} {
				if page, _ := x.Newest(s, 1); (len(page) == 1) != s.Selects(want) {
					t.Errorf("%+v selects %+v: %t", s, want, len(page) == 1)
				}
			}
			x.Forget("v")
		}
		checkEmpty(t, x)
	})
}
