package retained

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

func TestPostponedIsNotDueBeforeItsWaitIsOver(t *testing.T) {
	q := &Index{}
	q.Put(retained("other", 0, 2*time.Hour))
	q.Rest(retained("failed", 0, time.Hour), epoch.Add(90*time.Minute), 3)
	if next, ok := q.Resume(epoch.Add(time.Hour)); !ok || !next.Equal(epoch.Add(90*time.Minute)) {
		t.Errorf("the wait ends at %v, %t, want after 90 minutes", next, ok)
	}
	if due, _ := nextDue(q, 1); !due.Equal(epoch.Add(2 * time.Hour)) {
		t.Errorf("next is due at %v, want the one that does not wait", due)
	}
	if !q.Has(volume.Place{Pod: "pod", ID: "failed"}) || q.Len() != 2 || q.Waiting() != 1 {
		t.Errorf("%d volumes, %d postponed, want both to be known", q.Len(), q.Waiting())
	}
	if next, ok := q.Resume(epoch.Add(90 * time.Minute)); ok {
		t.Errorf("one more waits, until %v", next)
	}
	if got, ok := takeNext(q, 1); !ok || got.ID != "failed" || got.Tries != 3 {
		t.Errorf("took %+v, want the one that has waited, with its tries", got)
	}
	if q.Waiting() != 0 {
		t.Errorf("%d are postponed, want none", q.Waiting())
	}
}

func TestPostponedIsTakenByAPublish(t *testing.T) {
	q := &Index{}
	q.Rest(retained("v", 0, time.Hour), epoch.Add(time.Hour), 2)
	if got, ok := take(q, "v"); !ok || got.Tries != 2 {
		t.Errorf("took %+v, %t", got, ok)
	}
	if _, ok := q.Resume(epoch.Add(2 * time.Hour)); ok || q.Len() != 0 || q.Waiting() != 0 {
		t.Error("it is still there")
	}
	q.Put(retained("v", 0, time.Hour))
	if got, _ := take(q, "v"); got.Tries != 0 {
		t.Errorf("%d tries of a volume that was published since", got.Tries)
	}
}

// TestPostponedAgainstList compares with a plain list of waits.
func TestPostponedAgainstList(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	q := &Index{}
	waits := map[volume.ID]time.Time{}
	now := epoch
	for step := range 20_000 {
		id := fmt.Sprintf("v%d", rng.IntN(100))
		switch rng.IntN(4) {
		case 0:
			q.Put(retained(id, 0, time.Hour))
			delete(waits, volume.ID(id))
		case 1:
			waits[volume.ID(id)] = now.Add(time.Duration(1+rng.IntN(100)) * time.Second)
			q.Rest(retained(id, 0, time.Hour), waits[volume.ID(id)], 1)
		case 2:
			take(q, volume.ID(id))
			delete(waits, volume.ID(id))
		case 3:
			now = now.Add(time.Duration(rng.IntN(20)) * time.Second)
		}
		next, ok := q.Resume(now)
		var want time.Time
		for id, until := range waits {
			if !until.After(now) {
				delete(waits, id)
				continue
			}
			if want.IsZero() || until.Before(want) {
				want = until
			}
		}
		if ok != (len(waits) > 0) || ok && !next.Equal(want) {
			t.Fatalf("step %d: the next wait ends at %v, %t, want %v of %d", step, next, ok, want, len(waits))
		}
	}
}
