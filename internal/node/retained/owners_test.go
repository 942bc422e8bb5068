package retained

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// ofOwner returns a volume of a pod of an owner.
func ofOwner(id, pod, kind, owner string, after time.Duration, is volume.Outcome) volume.Record {
	r := retained(id, after, 1000*time.Hour)
	r.Pod, r.PodName, r.Namespace, r.Outcome = volume.PodUID(pod), pod, "ci", is
	r.Published = epoch
	r.Owner = volume.Owner{Verdict: volume.Confirmed, NamespaceUID: uids[0], Kind: kind, Name: owner}
	return r
}

// repeatedIn lets all go of which enough others stay, and returns their IDs in order.
func repeatedIn(q *Index, now time.Time) (ids []string) {
	for {
		c, ok := q.Repeated(now)
		if !ok {
			return ids
		}
		ids = append(ids, string(takeChosen(q, c).ID))
	}
}

// TestFirstAndLastStay: which volumes of an owner go, and that all others stay.
func TestFirstAndLastStay(t *testing.T) {
	crash := func(i int) volume.Record {
		return ofOwner(fmt.Sprint("v", i), fmt.Sprint("p", i), "Job", "etl", time.Duration(i)*time.Minute, volume.Failed)
	}
	crashes := func(n int) (all []volume.Record) {
		for i := range n {
			all = append(all, crash(i))
		}
		return all
	}
	with := func(all []volume.Record, i int, change func(*volume.Record)) []volume.Record {
		change(&all[i])
		return all
	}
	minute := func(job string, at time.Duration) string {
		return fmt.Sprintf("%s-%d", job, epoch.Add(at).Unix()/60)
	}
	for _, tt := range []struct {
		name    string
		may     volume.PerOwner
		volumes []volume.Record
		want    []string
	}{
		{"no limit", volume.PerOwner{}, crashes(9), nil},
		{"just as many", volume.PerOwner{First: 1, Last: 2}, crashes(3), nil},
		{"those between", volume.PerOwner{First: 1, Last: 2}, crashes(6), []string{"v1", "v2", "v3"}},
		{"the last alone", volume.PerOwner{Last: 1}, crashes(3), []string{"v0", "v1"}},
		{"pinned", volume.PerOwner{First: 1, Last: 1}, with(crashes(4), 1, func(r *volume.Record) {
			r.Hold = volume.Hold{Kind: volume.Pinned, For: time.Hour}
		}), []string{"v2"}},
		{"released", volume.PerOwner{First: 1, Last: 1}, with(crashes(3), 1, func(r *volume.Record) {
			r.Hold = volume.Hold{Kind: volume.Released, For: time.Hour}
		}), []string{"v1"}},
		{"a success among failures", volume.PerOwner{First: 1, Last: 1}, with(crashes(4), 1, func(r *volume.Record) {
			r.Outcome = volume.Succeeded
		}), []string{"v2"}},
		{"a stop and an end that is not known among failures", volume.PerOwner{Last: 1}, with(with(crashes(4), 2, func(r *volume.Record) {
			r.Outcome = volume.Stopped
		}), 3, func(r *volume.Record) { r.Outcome = volume.OutcomeUnknown }), []string{"v0"}},
		{"an owner that is not confirmed", volume.PerOwner{Last: 1}, with(crashes(3), 0, func(r *volume.Record) {
			r.Owner = volume.Owner{}
		}), []string{"v1"}},
		{"another owner", volume.PerOwner{Last: 1}, with(crashes(3), 0, func(r *volume.Record) { r.Owner.Name = "other" }), []string{"v1"}},
		{"another kind", volume.PerOwner{Last: 1}, with(crashes(3), 0, func(r *volume.Record) {
			r.Owner.Kind = "Workflow"
		}), []string{"v1"}},
		{"an earlier namespace", volume.PerOwner{Last: 1}, with(crashes(3), 0, func(r *volume.Record) { r.Owner.NamespaceUID = uids[1] }),
			[]string{"v1"}},
		{"two volumes of a pod", volume.PerOwner{First: 1, Last: 1}, []volume.Record{
			ofOwner("a1", "a", "StatefulSet", "db", 1, 0), ofOwner("b1", "b", "StatefulSet", "db", 2, 0),
			ofOwner("a2", "a", "StatefulSet", "db", 3, 0), ofOwner("c1", "c", "StatefulSet", "db", 4, 0),
			ofOwner("b2", "b", "StatefulSet", "db", 5, 0), ofOwner("c2", "c", "StatefulSet", "db", 6, 0),
		}, []string{"b1", "b2"}},
		{"Jobs of a CronJob", volume.PerOwner{Last: 1}, []volume.Record{
			ofOwner("a", "a", "Job", minute("nightly", -time.Hour), 1, volume.Failed),
			ofOwner("b", "b", "Job", minute("nightly", -time.Minute), 2, volume.Failed),
			ofOwner("c", "c", "Job", minute("hourly", 0), 3, volume.Failed),
		}, []string{"a"}},
		{"Jobs whose names only look so", volume.PerOwner{Last: 1}, []volume.Record{
			ofOwner("a", "a", "Job", "train-20261129", 1, volume.Failed), ofOwner("b", "b", "Job", "train-20261130", 2, volume.Failed),
			ofOwner("c", "c", "Job", minute("train", 2*time.Hour), 3, volume.Failed), ofOwner("d", "d", "Job", "-1", 4, volume.Failed),
		}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := &Index{PerOwner: func(string) volume.PerOwner { return tt.may }}
			for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(len(tt.volumes)) {
				q.Put(tt.volumes[i])
			}
			if got := repeatedIn(q, always); !slices.Equal(got, tt.want) {
				t.Errorf("gone are %v, want %v", got, tt.want)
			}
		})
	}
}

// TestRepeatedAgainstModel: while volumes come, go, are attached and learn their outcome.
func TestRepeatedAgainstModel(t *testing.T) {
	may := map[string]volume.PerOwner{"a": {First: 1, Last: 2}, "b": {Last: 1}}
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 5))
		q := &Index{
			MinLifespan: time.Duration(seed%3) * time.Hour, PerOwner: func(namespace string) volume.PerOwner { return may[namespace] },
		}
		m, kept := newModel(q), map[volume.ID]bool{}
		now := epoch.Add(6 * time.Hour)
		for step := range 300 {
			id := volume.ID(fmt.Sprint("v", rng.IntN(40)))
			switch rng.IntN(5) {
			case 0, 1, 2:
				a := anyVolume(rng, id, []string{"", "a", "b", "c"})
				a.Pod = volume.PodUID(fmt.Sprint("p", rng.IntN(25)))
				kind := []string{"Job", "ReplicaSet", "Custom"}[rng.IntN(3)]
				a.Owner = volume.Owner{Verdict: volume.Confirmed, NamespaceUID: uids[0], Kind: kind, Name: "x"}
				take(q, id)
				delete(kept, id)
				m.both(q, a)
			case 3:
				take(q, id)
				delete(m.volumes, id)
				delete(kept, id)
			case 4:
				if _, there := m.volumes[id]; there {
					kept[id] = !kept[id]
					q.Keep(id, kept[id])
				}
			}
			q.Recheck()
			want := m.repeated(now, kept, may)
			c, ok := q.Repeated(now)
			if ok != (len(want) > 0) || ok && !slices.Contains(want, c.ID()) {
				t.Fatalf("seed %d, step %d: %v goes, %t, want one of %v", seed, step, c, ok, want)
			}
			if ok && rng.IntN(2) == 0 {
				id := takeChosen(q, c).ID
				delete(m.volumes, id)
				delete(kept, id)
			}
		}
	}
}

// TestLateOutcomePushesNothingOut: a pod of which it is not known yet how it ended may have succeeded.
func TestLateOutcomePushesNothingOut(t *testing.T) {
	q := &Index{PerOwner: func(string) volume.PerOwner { return volume.PerOwner{Last: 1} }}
	q.Put(ofOwner("failed", "p1", "Job", "etl", 1, volume.Failed))
	late := ofOwner("late", "p2", "Job", "etl", 2, volume.OutcomeUnknown)
	q.Put(late)
	if got := repeatedIn(q, always); got != nil {
		t.Errorf("while it is not known how the last pod ended, %v go", got)
	}
	late.Outcome = volume.Failed
	q.Put(late)
	if got, want := repeatedIn(q, always), []string{"failed"}; !slices.Equal(got, want) {
		t.Errorf("once it is known that it failed, %v go, want %v", got, want)
	}
}

// TestOwnersThatAreGoneAreForgotten: nothing is kept of an owner whose last volume is gone.
func TestOwnersThatAreGoneAreForgotten(t *testing.T) {
	q := &Index{PerOwner: func(string) volume.PerOwner { return volume.PerOwner{Last: 1} }}
	for i := range 1000 {
		q.Put(ofOwner("a", "p", "Job", fmt.Sprint("etl-", i), 0, volume.Failed))
		q.Recheck()
		q.Repeated(always)
		q.Forget("a")
	}
	if o := q.owners; o.listed.length+o.free.length+len(o.suspects)+len(o.suspected)+len(o.stay) > 0 {
		t.Errorf("owners and pods are kept that have no volumes: %+v", o)
	}
}

// BenchmarkUnpublishOfAnOwner measures what one more volume of an owner costs, until it is known which one goes for it: with
// few volumes of the owner, with many that cannot go, and beside many other owners. The times are to be compared with that of few.
func BenchmarkUnpublishOfAnOwner(b *testing.B) {
	const many, ring = 100_000, 4096
	for _, is := range []struct {
		name    string
		volumes int
		now     time.Time
		change  func(i int, r *volume.Record)
	}{
		{"few", 6, always, func(int, *volume.Record) {}},
		{"many pinned", many, always, func(_ int, r *volume.Record) { r.Hold = volume.Hold{Kind: volume.Pinned, For: 10_000 * time.Hour} }},
		{"many young", many, epoch, func(int, *volume.Record) {}},
		{"many owners", many, always, func(i int, r *volume.Record) { r.Owner.Name = fmt.Sprint("other-", i) }},
	} {
		b.Run(is.name, func(b *testing.B) {
			q := &Index{MinLifespan: time.Hour, PerOwner: func(string) volume.PerOwner { return volume.PerOwner{First: 1, Last: 5} }}
			record := func(i int) volume.Record {
				r := owned(i, 1)
				r.Outcome, r.Owner.Name = volume.Failed, "etl"
				return r
			}
			for i := range is.volumes {
				r := record(i)
				is.change(i, &r)
				q.Put(r)
			}
			repeatedIn(q, is.now)
			var more [ring]volume.Record
			for i := range more {
				more[i] = record(is.volumes + i)
			}
			for i := 0; b.Loop(); i++ {
				r := more[i%ring]
				r.Unpublished = epoch.Add(time.Duration(is.volumes + i))
				q.Put(r)
				if c, ok := q.Repeated(is.now); ok {
					q.Forget(c.ID())
				}
			}
		})
	}
}

// TestRepeatedWhenTheLimitChanges: a limit that is lowered takes effect at the next Recheck.
func TestRepeatedWhenTheLimitChanges(t *testing.T) {
	may := volume.PerOwner{}
	q := &Index{PerOwner: func(string) volume.PerOwner { return may }}
	for i := range 5 {
		q.Put(ofOwner(fmt.Sprint("v", i), fmt.Sprint("p", i), "Job", "etl", time.Duration(i), volume.Failed))
	}
	if got := repeatedIn(q, always); got != nil {
		t.Errorf("without a limit %v go", got)
	}
	may = volume.PerOwner{First: 1, Last: 1}
	q.Recheck()
	if got, want := repeatedIn(q, always), []string{"v1", "v2", "v3"}; !slices.Equal(got, want) {
		t.Errorf("gone are %v, want %v", got, want)
	}
}
