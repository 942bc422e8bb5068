package retained

import (
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// toArchive are the listed volumes that are to be archived, by the order of lists. The zero toArchive is empty and ready to use.
type toArchive struct {
	sorted
	// unanswered and denied are how many would be to be archived, had a gateway confirmed whose they are.
	unanswered, denied int
	// changes is another number when one has joined, or has changed.
	changes uint64
}

// join adds an entry that is to be archived, part takes it out if it is there.
func (t *toArchive) join(e *entry) {
	switch {
	case e.rare == nil || e.rare.archive == nil:
	case e.rare.archive.confirmed:
		t.insert(t.find(e), e)
		t.changes++
	default:
		*t.unconfirmed(e)++
	}
}

// unconfirmed counts volumes like that one.
func (t *toArchive) unconfirmed(e *entry) *int {
	if e.group.value.list.space.verdict == volume.Denied {
		return &t.denied
	}
	return &t.unanswered
}

func (t *toArchive) part(e *entry) {
	switch {
	case e.rare == nil || e.rare.archive == nil:
	case e.rare.archive.confirmed:
		t.remove(t.find(e))
	default:
		*t.unconfirmed(e)--
	}
}

// archiving is what the index keeps of a volume that is to be archived. One whose owner is not confirmed is only counted.
type archiving struct {
	confirmed bool
	seal      string
	// rank is that of its record, after how long after its unpublish it is archived at the earliest.
	rank  int
	after time.Duration
}

// archivingOf returns what is to be kept of a record; nil if it is not to be archived.
func archivingOf(r *volume.Record) *archiving {
	if !r.WantsArchive() {
		return nil
	}
	return &archiving{confirmed: r.ToArchive(), seal: r.Owner.Seal, rank: r.ArchiveRank(), after: r.ArchiveAfter()}
}

// ToArchive returns what of the volumes from a place on waits to be archived at the given time, the newest first, without the volumes
// of not; those of later are not next. It looks at no more than atMost volumes, which is taken to be at least 1. next is the place from
// which on to go on; it is the zero Key at the end. What the parts say is put together by [volume.Waiting.With].
func (x *Index) ToArchive(now time.Time, not, later *volume.IDs, from volume.Key, atMost int) (w volume.Waiting, next volume.Key) {
	at := x.clock.since(now)
	place := x.toArchive.end()
	if !from.IsZero() {
		place = x.toArchive.search(func(e *entry) bool { return x.isBefore(e, from) })
	}
	if from.IsZero() {
		w.Unanswered, w.Denied = x.toArchive.unanswered, x.toArchive.denied
	}
	var first, last, looked *entry
	e := x.toArchive.before(&place)
	for ; e != nil && atMost > 0; atMost-- {
		looked = e
		if !e.isIn(not) {
			if w.Volumes++; last == nil {
				last = e
			}
			w.Bytes += e.size().Bytes
			first = e
			x.mayBeNext(&w, e, later, at)
		}
		e = x.toArchive.before(&place)
	}
	if first != nil {
		w.Oldest, w.Newest = x.wall(first), x.wall(last)
	}
	if e != nil {
		next = x.key(looked)
	}
	return w, next
}

// mayBeNext compares an entry with what is next. Failures are, and among equals the newest, which was looked at before.
func (x *Index) mayBeNext(w *volume.Waiting, e *entry, later *volume.IDs, at int64) {
	a := e.rare.archive
	switch wait := time.Duration(after(e.since, a.after) - at); {
	case wait > 0 && !e.isIn(later):
		if w.Later == 0 || wait < w.Later {
			w.Later = wait
		}
	case wait <= 0 && (w.Next == "" || a.rank < w.Rank) && !e.isIn(later):
		w.Next, w.Rank = e.volumeID(), a.rank
	}
}

// isIn reports whether a volume is in a set. Most have no ID in words, which it does not make.
func (e *entry) isIn(set *volume.IDs) bool {
	if e.rare != nil && e.rare.named {
		return set.Has(e.rare.id)
	}
	return set.HasDigits(e.id)
}

// EndCopies lets volumes whose copies in the archive have ended by now go no earlier than those without. It looks at volumes once an
// hour, and only if there is such a copy: at no more than atMost, which is taken to be at least 1. more: it has not looked at all.
func (x *Index) EndCopies(now time.Time, atMost int) (more bool) {
	if hour := now.Unix() / 3600; hour > x.hour {
		x.hour, x.ending, x.ended = hour, false, volume.Key{}
		for f := range x.fates {
			x.ending = x.ending || f != f.at(hour)
		}
	}
	if !x.ending {
		return false
	}
	var last *entry
	for m := x.newest(volume.Selection{Before: x.ended}); len(m) > 0; m.next() {
		if last != nil && atMost <= 0 {
			x.ended = x.key(last)
			return true
		}
		last = m[0].entry
		if atMost--; last.copyIsOver(x.hour) {
			x.move(last, func() {}) // see settle
		}
	}
	x.ending = false
	return false
}

// copyIsOver reports whether the copy of a volume has ended in an hour since 1970, and its fate does not say so.
func (e *entry) copyIsOver(hour int64) bool {
	return e.fate != nil && e.fate.value != e.fate.value.at(hour)
}

// endCopy lets the fate of an entry, which is in no heap, say that its copy has ended. Those that were in no list when EndCopies looked
// are told so when they come to rest.
func (x *Index) endCopy(e *entry) {
	if e.copyIsOver(x.hour) {
		was := e.fate
		e.fate = x.fates.use(was.value.at(x.hour))
		x.fates.drop(was)
	}
}

// at returns what a fate is in an hour since 1970.
func (f fate) at(hour int64) fate {
	f.copyOver = f.copyOver || f.archivedUntil > 0 && f.archivedUntil <= hour
	return f
}

// ArchiveChanges returns another number than before if a volume that is to be archived has joined the lists, or has changed.
func (x *Index) ArchiveChanges() uint64 { return x.toArchive.changes }
