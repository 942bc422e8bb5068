package retained

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// world has volumes of repeated pods, by ID, with the owner that people know them by.
type world map[volume.ID]evidence

type evidence struct {
	volume.Record
	owner string
}

// anyWorld makes volumes of two namespaces that had one name, of a Job that was tried again, of a CronJob and of a
// StatefulSet, in any order.
func anyWorld(rng *rand.Rand) world {
	w := world{}
	for i, after := range rng.Perm(60) {
		uid, minute := uids[rng.IntN(2)], epoch.Unix()/60-int64(rng.IntN(600))
		kind, name, owner := "Job", "etl", "job"
		switch rng.IntN(3) {
		case 0:
			kind, name, owner = "StatefulSet", "etl", "set"
		case 1:
			name, owner = fmt.Sprintf("nightly-%d", minute), "cronjob"
		}
		pod := fmt.Sprint(uid, owner, i/2)
		r := ofOwner(fmt.Sprint("v", i), pod, kind, name, time.Duration(after)*time.Minute, anyOutcome(rng))
		r.Owner.NamespaceUID = uid
		if rng.IntN(8) == 0 {
			r.Hold = volume.Hold{Kind: volume.Pinned, For: 2000 * time.Hour}
		}
		w[r.ID] = evidence{r, fmt.Sprint(uid, owner, r.Outcome)}
	}
	return w
}

// beside returns of how many other pods that count with this one volumes are there that are all older, or all newer.
func (w world) beside(e evidence) (older, newer int) {
	is := map[volume.PodUID]int{}
	for _, other := range w {
		switch at := other.Unpublished.Compare(e.Unpublished); {
		case other.owner != e.owner || other.Pod == e.Pod:
		case is[other.Pod] == 0:
			is[other.Pod] = at
		case is[other.Pod] != at:
			is[other.Pod] = 2
		}
	}
	for _, at := range is {
		switch at {
		case -1:
			older++
		case 1:
			newer++
		case 2: // it is both: it was there before, and is there after
			older, newer = older+1, newer+1
		}
	}
	return older, newer
}

// judge lets all go that the index wants to, and says what is wrong with that. It knows nothing of how the index finds them.
func (w world) judge(q *Index, may volume.PerOwner) (wrong []string) {
	for _, id := range repeatedIn(q, always) {
		e := w[volume.ID(id)]
		older, newer := w.beside(e)
		switch {
		case e.Hold.Kind == volume.Pinned:
			wrong = append(wrong, fmt.Sprintf("%s of %s is pinned, and goes", id, e.owner))
		case older < may.First || newer < may.Last:
			wrong = append(wrong, fmt.Sprintf("%s of %s goes, beside %d older and %d newer pods", id, e.owner, older, newer))
		}
		delete(w, e.ID)
	}
	pods := map[string]map[volume.PodUID]bool{}
	for _, e := range w {
		if pods[e.owner] == nil {
			pods[e.owner] = map[volume.PodUID]bool{}
		}
		pods[e.owner][e.Pod] = e.Hold.Kind == volume.Pinned || pods[e.owner][e.Pod]
	}
	for owner, of := range pods {
		free := 0
		for _, pinned := range of {
			if !pinned {
				free++
			}
		}
		if free > may.First+may.Last {
			wrong = append(wrong, fmt.Sprintf("of %s there are still %d pods", owner, free))
		}
	}
	return wrong
}

// TestBrokenOrdersAreFound: an index that goes by the numbers takes nothing that has to stay, and one that mistakes one thing
// for another is found out.
func TestBrokenOrdersAreFound(t *testing.T) {
	may := volume.PerOwner{First: 1, Last: 2}
	for _, is := range []struct {
		name     string
		mistakes func(r *volume.Record, may *volume.PerOwner)
	}{
		{"", func(*volume.Record, *volume.PerOwner) {}},
		{"pushes out what another owner left", func(r *volume.Record, _ *volume.PerOwner) { r.Owner.Kind, r.Owner.Name = "Job", "all" }},
		{"pushes out what an earlier namespace left", func(r *volume.Record, _ *volume.PerOwner) { r.Owner.NamespaceUID = uids[0] }},
		{"lets the first one go", func(_ *volume.Record, may *volume.PerOwner) { may.First = 0 }},
		{"lets one of the last go", func(_ *volume.Record, may *volume.PerOwner) { may.Last-- }},
		{"lets successes push failures out", func(r *volume.Record, _ *volume.PerOwner) {
			if r.Outcome == volume.Succeeded {
				r.Outcome = volume.Failed
			}
		}},
		{"takes what is not known for failures", func(r *volume.Record, _ *volume.PerOwner) {
			if r.Outcome == volume.OutcomeUnknown {
				r.Outcome = volume.Failed
			}
		}},
		{"takes pods' volumes for pods", func(r *volume.Record, _ *volume.PerOwner) { r.Pod += volume.PodUID(r.ID) }},
		{"forgets pins", func(r *volume.Record, _ *volume.PerOwner) { r.Hold = volume.Hold{} }},
		{"takes a CronJob's Jobs for owners", func(r *volume.Record, _ *volume.PerOwner) {
			r.Owner.Name = strings.ReplaceAll(r.Owner.Name, "-", ".")
		}},
		{"lets all stay", func(_ *volume.Record, may *volume.PerOwner) { *may = volume.PerOwner{} }},
	} {
		t.Run(is.name, func(t *testing.T) {
			var wrong []string
			for seed := range uint64(30) {
				w, believed := anyWorld(rand.New(rand.NewPCG(seed, 9))), may
				q := &Index{PerOwner: func(string) volume.PerOwner { return believed }}
				for _, e := range w {
					believed = may
					is.mistakes(&e.Record, &believed)
					q.Put(e.Record)
				}
				wrong = append(wrong, w.judge(q, may)...)
			}
			if honest := is.name == ""; honest != (len(wrong) == 0) {
				t.Errorf("%d mistakes: %.1000s", len(wrong), strings.Join(wrong, "\n"))
			}
		})
	}
}
