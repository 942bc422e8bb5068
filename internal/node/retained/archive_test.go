package retained

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// toBeArchived is the volume of a pod that ended in that way, of which a copy is wanted.
func toBeArchived(id string, after time.Duration, o volume.Outcome, when volume.Archive) volume.Record {
	r := retained(id, after, 100*time.Hour)
	r.Owner = volume.Owner{Verdict: volume.Confirmed, NamespaceUID: uids[0], Seal: "seal of " + id}
	r.Outcome, r.Terms = o, volume.Terms{Lifespan: time.Hour, Archive: when}
	return r
}

// whatWaits is what waits, put together from parts that differ in their length.
func whatWaits(x *Index, now time.Time, not, later map[volume.ID]struct{}) (w volume.Waiting) {
	without, behind := volume.NewIDs(not), volume.NewIDs(later)
	whole, next := x.ToArchive(now, without, behind, volume.Key{}, 1_000_000)
	if !next.IsZero() {
		panic("there is more than all")
	}
	for atMost := 1; ; atMost++ {
		part, then := x.ToArchive(now, without, behind, next, atMost)
		if w, next = w.With(part), then; next.IsZero() {
			break
		}
	}
	if w != whole {
		panic(fmt.Sprintf("%+v in parts, and %+v as a whole", w, whole))
	}
	return w
}

// TestArchiveOrder: failures first, and of equals the newest; a volume whose outcome decides waits a little for it.
func TestArchiveOrder(t *testing.T) {
	const never, onFailure, always = volume.ArchiveNever, volume.ArchiveOnFailure, volume.ArchiveAlways
	x := &Index{}
	released := toBeArchived("released", 0, volume.Failed, always)
	released.Hold = volume.Hold{Kind: volume.Released, For: time.Hour, By: "anna"}
	denied := toBeArchived("denied", 0, volume.Failed, always)
	denied.Owner = volume.Owner{Verdict: volume.Denied}
	unasked := toBeArchived("unasked", 0, volume.Failed, always)
	unasked.Owner = volume.Owner{}
	attached := toBeArchived("attached", 0, volume.Failed, always)
	attached.Attach = volume.Place{Pod: "p", ID: "v"}
	for _, r := range []volume.Record{
		toBeArchived("succeeded, always", 9*time.Minute, volume.Succeeded, always),
		toBeArchived("failed long ago", 0, volume.Failed, onFailure),
		toBeArchived("unknown", 9*time.Minute, volume.OutcomeUnknown, onFailure),
		toBeArchived("stopped", 8*time.Minute, volume.Stopped, onFailure),
		toBeArchived("failed", time.Minute, volume.Failed, onFailure),
		toBeArchived("unknown, always", 7*time.Minute, volume.OutcomeUnknown, always),
		toBeArchived("succeeded", 9*time.Minute, volume.Succeeded, onFailure),
		toBeArchived("never", 9*time.Minute, volume.Failed, never),
		toBeArchived("archived", 9*time.Minute, volume.Failed, always).InArchive(epoch.Add(time.Hour)),
		released, denied, unasked, attached,
	} {
		x.Put(r)
	}
	now, not, got := epoch.Add(9*time.Minute+30*time.Second), map[volume.ID]struct{}{}, []volume.ID(nil)
	w := whatWaits(x, now, nil, nil)
	if w.Volumes != 6 || !w.Oldest.Equal(epoch) || !w.Newest.Equal(epoch.Add(9*time.Minute)) || w.Later != 30*time.Second ||
		w.Unanswered != 1 || w.Denied != 1 {
		t.Errorf("%+v", w)
	}
	for {
		w := whatWaits(x, now, nil, not)
		if w.Next == "" && w.Later > 0 {
			now = now.Add(w.Later)
			continue
		}
		if w.Next == "" {
			break
		}
		got = append(got, w.Next)
		not[w.Next] = struct{}{}
	}
	if w := whatWaits(x, now, nil, not); w.Volumes != 6 {
		t.Errorf("%+v, and all count that are tried again later", w)
	}
	if w := whatWaits(x, now, not, nil); w.Volumes != 0 || w.Next != "" {
		t.Errorf("%+v, want nothing", w)
	}
	if want := []volume.ID{
		"failed", "failed long ago", "stopped", "unknown, always", "succeeded, always", "unknown",
	}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestToArchiveAgainstAll compares what waits with all volumes, while they come, change and go.
func TestToArchiveAgainstAll(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 3))
		x, all := &Index{}, map[volume.ID]volume.Record{}
		for range 300 {
			id := volume.ID(fmt.Sprint("v", rng.IntN(20)))
			before := x.ArchiveChanges()
			switch rng.IntN(5) {
			case 0, 1, 2:
				r := toBeArchived(string(id), time.Duration(rng.Int64N(int64(time.Hour))), anyOutcome(rng), volume.Archive(rng.IntN(3)))
				if verdict := volume.Verdict(rng.IntN(6)); verdict == volume.Unasked || verdict == volume.Denied {
					r.Owner = volume.Owner{Verdict: verdict}
				}
				if rng.IntN(4) == 0 {
					r = r.InArchive(epoch.Add(time.Hour))
				}
				x.Put(r)
				all[id] = r
				if r.ToArchive() && x.ArchiveChanges() == before {
					t.Fatalf("seed %d: ArchiveChanges does not say that %s is to be archived", seed, id)
				}
			case 3:
				take(x, id)
				delete(all, id)
			case 4:
				x.Publish(volume.Place{ID: id, Pod: "p"}, &struct{ int }{})
				delete(all, id)
				x.Set(id, nil, x.find(id).rare.publish)
				x.Forget(id)
			}
			now := epoch.Add(time.Duration(rng.Int64N(int64(2 * time.Hour))))
			var want []volume.Record
			waiting, unconfirmed := 0, map[volume.Verdict]int{}
			for _, r := range all {
				if r.WantsArchive() {
					unconfirmed[r.Owner.Verdict]++
				}
				if r.ToArchive() {
					waiting++
					if !r.Unpublished.Add(r.ArchiveAfter()).After(now) {
						want = append(want, r)
					}
				}
			}
			w := whatWaits(x, now, nil, nil)
			if w.Unanswered != unconfirmed[volume.Unasked] || w.Denied != unconfirmed[volume.Denied] {
				t.Fatalf("seed %d: %+v, want %v", seed, w, unconfirmed)
			}
			if w.Volumes != waiting || (w.Next != "") != (len(want) > 0) {
				t.Fatalf("seed %d: %+v, want %d of which %d may be next", seed, w, waiting, len(want))
			}
			for i := range want {
				first := all[w.Next]
				if a, b := first.ArchiveRank(), want[i].ArchiveRank(); a > b || a == b && first.Unpublished.Before(want[i].Unpublished) {
					t.Fatalf("seed %d: %s is next, and %s comes before it", seed, w.Next, want[i].ID)
				}
			}
		}
	}
}

// TestArchivedComesBack: until when the archive has a copy, and the seal as long as the volume is to be archived.
func TestArchivedComesBack(t *testing.T) {
	x := &Index{}
	for _, want := range []volume.Record{
		toBeArchived("waits", 0, volume.Failed, volume.ArchiveOnFailure),
		toBeArchived("is", 0, volume.Failed, volume.ArchiveOnFailure).InArchive(epoch.Add(90 * time.Minute)),
	} {
		x.Put(want)
		if got, _ := x.Look(want.ID); !reflect.DeepEqual(got.Record, want) {
			t.Errorf("%+v came back as %+v", want, got.Record)
		}
	}
	r := toBeArchived("not wanted", 0, volume.Succeeded, volume.ArchiveOnFailure)
	x.Put(r)
	if got, _ := x.Look(r.ID); got.Owner != r.Owner.Unsealed() {
		t.Errorf("%+v, want no seal", got.Owner)
	}
	for _, id := range []volume.ID{"waits", "is", "not wanted"} {
		take(x, id)
	}
	checkEmpty(t, x)
}

// TestCopyThatHasEnded: a volume whose copy in the archive is no more goes no earlier than one without, whether that was so when
// it came or not.
func TestCopyThatHasEnded(t *testing.T) {
	for name, before := range map[string]time.Time{"while it is here": epoch, "before it came": epoch.Add(3 * time.Hour)} {
		x := &Index{}
		x.EndCopies(before, 10)
		x.Put(toBeArchived("older", 0, volume.Failed, volume.ArchiveAlways))
		x.Put(toBeArchived("copied", time.Minute, volume.Failed, volume.ArchiveAlways).InArchive(epoch.Add(2 * time.Hour)))
		next := func(now time.Time, want volume.ID) {
			t.Helper()
			x.EndCopies(now, 10)
			if c, ok := x.Early(epoch.Add(50*time.Hour), 0.01, volume.ForBytes); !ok || x.known(c.entry).ID != want {
				t.Errorf("%s, at %s: %+v, want %s", name, now, x.known(c.entry), want)
			}
		}
		if before.Equal(epoch) {
			next(epoch.Add(time.Hour), "copied")
		}
		next(epoch.Add(3*time.Hour), "older")
		if got, _ := x.Look("copied"); !got.Archived() {
			t.Errorf("%s: %+v", name, got)
		}
		take(x, "older")
		take(x, "copied")
		checkEmpty(t, x)
	}
}

// TestCopiesEndInParts: a look that ends before all volumes goes on where it was, and what is in no list meanwhile is not forgotten.
func TestCopiesEndInParts(t *testing.T) {
	x := &Index{}
	x.EndCopies(epoch, 1)
	const volumes = 10
	for i := range volumes {
		id := fmt.Sprint("v", i)
		x.Put(toBeArchived(id, time.Duration(i)*time.Minute, volume.Failed, volume.ArchiveAlways).InArchive(epoch.Add(2 * time.Hour)))
	}
	wanted := volume.Place{ID: "v3", Pod: x.find("v3").podUID()}
	record := x.record(x.find("v3"))
	x.Publish(wanted, "publish")
	over := func() (count int) {
		for i := range volumes {
			if !x.find(volume.ID(fmt.Sprint("v", i))).copyIsOver(epoch.Add(3*time.Hour).Unix() / 3600) {
				count++
			}
		}
		return count
	}
	for looks := 1; x.EndCopies(epoch.Add(3*time.Hour), 4); looks++ {
		if got := over(); got != 4*looks {
			t.Fatalf("after %d looks %d copies are over", looks, got)
		}
	}
	if got := over(); got != volumes-1 {
		t.Errorf("at the end %d copies are over", got)
	}
	x.Set(wanted.ID, &record, "publish")
	x.Rest(record, time.Time{}, 0)
	if got := over(); got != volumes || x.EndCopies(epoch.Add(3*time.Hour+time.Minute), 4) {
		t.Errorf("%d copies are over after it has come back", got)
	}
	for i := range volumes {
		take(x, volume.ID(fmt.Sprint("v", i)))
	}
	checkEmpty(t, x)
}

// TestToArchiveMakesNoTexts: what a search among many costs is no memory for each of them, though some are left out.
func TestToArchiveMakesNoTexts(t *testing.T) {
	x, out := &Index{}, map[volume.ID]struct{}{}
	for i := range 1000 {
		r := toBeArchived(string(volume.KubeletID("p", fmt.Sprint(i))), 0, volume.Failed, volume.ArchiveAlways)
		x.Put(r)
		if i < 10 {
			out[r.ID] = struct{}{}
		}
	}
	out["named"] = struct{}{}
	if w := whatWaits(x, epoch.Add(time.Hour), out, nil); w.Volumes != 990 {
		t.Errorf("%d wait, want 990", w.Volumes)
	}
	if w := whatWaits(x, epoch.Add(time.Hour), nil, out); w.Volumes != 1000 {
		t.Errorf("%d wait, want all", w.Volumes)
	} else if _, left := out[w.Next]; left {
		t.Errorf("%s is next, which is tried later", w.Next)
	}
	if made := testing.AllocsPerRun(10, func() { whatWaits(x, epoch.Add(time.Hour), out, out) }); made > 200 {
		t.Errorf("%v allocations", made)
	}
}

// TestToArchiveIsBounded: however many wait, and are left out, one part looks at a few of them, and all parts at all.
func TestToArchiveIsBounded(t *testing.T) {
	const many, slice = 100_000, 1000
	x, out := &Index{}, map[volume.ID]struct{}{}
	for i := range many {
		outcome := volume.Succeeded
		if i == 0 {
			outcome = volume.Failed // the oldest one, which is found in the last part
		}
		r := toBeArchived(string(volume.KubeletID("p", fmt.Sprint(i))), time.Duration(i)*time.Millisecond, outcome, volume.ArchiveAlways)
		if x.Put(r); i%10 == 1 {
			out[r.ID] = struct{}{}
		}
	}
	first := volume.KubeletID("p", "0")
	not, from := volume.NewIDs(out), volume.Key{}
	var all volume.Waiting
	for parts := 1; ; parts++ {
		part, next := x.ToArchive(epoch.Add(time.Hour), not, nil, from, slice)
		if part.Volumes != slice*9/10 {
			t.Fatalf("part %d has %d volumes", parts, part.Volumes)
		}
		if all, from = all.With(part), next; from.IsZero() {
			if parts != many/slice || all.Volumes != many*9/10 || all.Next != first || all.Rank != 0 || !all.Oldest.Equal(epoch) {
				t.Errorf("%d parts: %+v", parts, all)
			}
			return
		}
	}
}
