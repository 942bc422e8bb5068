package retained

import (
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// toArchive are the listed volumes that are to be archived. They are few: the archive takes them one after the other. The zero
// toArchive is empty and ready to use.
type toArchive struct {
	entries []*entry
	places  map[*entry]int
	// changes is another number when one has joined, or has changed.
	changes uint64
}

// join adds an entry that is to be archived, part takes it out if it is there.
func (t *toArchive) join(e *entry) {
	if e.rare == nil || e.rare.archive == nil {
		return
	}
	if t.places == nil {
		t.places = map[*entry]int{}
	}
	t.places[e] = len(t.entries)
	t.entries = append(t.entries, e)
	t.changes++
}

func (t *toArchive) part(e *entry) {
	at, there := t.places[e]
	if !there {
		return
	}
	last := len(t.entries) - 1
	t.entries[at] = t.entries[last]
	t.places[t.entries[at]] = at
	t.entries[last] = nil
	t.entries = t.entries[:last]
	delete(t.places, e)
	if last == 0 {
		t.entries, t.places = nil, nil // there may have been many
	}
}

// archiving is what the index keeps of a volume that is to be archived.
type archiving struct {
	seal string
	// rank is that of its record, after how long after its unpublish it is archived at the earliest.
	rank  int
	after time.Duration
}

// archivingOf returns what is to be kept of a record; nil if it is not to be archived.
func archivingOf(r *volume.Record) *archiving {
	if !r.ToArchive() {
		return nil
	}
	return &archiving{seal: r.Owner.Seal, rank: r.ArchiveRank(), after: r.ArchiveAfter()}
}

// ToArchive returns what waits to be archived at the given time, without the volumes of not; those of later are not next.
// Failures are, and among equals the newest.
func (x *Index) ToArchive(now time.Time, not, later map[volume.ID]struct{}) volume.Waiting {
	var (
		w              volume.Waiting
		next           *entry
		oldest, newest *entry
		at             = x.clock.since(now)
	)
	out, behind := setOf(not), setOf(later)
	for _, e := range x.toArchive.entries {
		if out.has(e) {
			continue
		}
		w.Volumes++
		w.Bytes += e.size().Bytes
		if oldest == nil || before(e, oldest) {
			oldest = e
		}
		if newest == nil || before(newest, e) {
			newest = e
		}
		switch wait := time.Duration(after(e.since, e.rare.archive.after) - at); {
		case behind.has(e):
		case wait > 0:
			if w.Later == 0 || wait < w.Later {
				w.Later = wait
			}
		case next == nil || e.archivedBefore(next):
			next = e
		}
	}
	if oldest != nil {
		w.Oldest, w.Newest = x.wall(oldest), x.wall(newest)
	}
	if next != nil {
		w.Next = next.volumeID()
	}
	return w
}

// set is a set of volumes in which an entry is found without its ID in words, which it has to make. Most are kubelets'.
type set struct {
	digits map[[idBytes]byte]struct{}
	texts  map[volume.ID]struct{}
}

func setOf(ids map[volume.ID]struct{}) (s set) {
	for id := range ids {
		digits, ok := digitsOf(id)
		switch {
		case !ok:
			s.texts = ids // those of kubelets do no harm in it
		case s.digits == nil:
			s.digits = make(map[[idBytes]byte]struct{}, len(ids))
			fallthrough
		default:
			s.digits[digits] = struct{}{}
		}
	}
	return s
}

func (s *set) has(e *entry) bool {
	var there bool
	if e.rare != nil && e.rare.named {
		_, there = s.texts[e.rare.id]
	} else {
		_, there = s.digits[e.id]
	}
	return there
}

// EndCopies lets volumes whose copies in the archive have ended by now go no earlier than those without. It goes through all
// volumes at most once an hour, and only if there is such a copy.
func (x *Index) EndCopies(now time.Time) {
	hour := now.Unix() / 3600
	if hour <= x.hour {
		return
	}
	x.hour = hour
	over := false
	for f := range x.fates {
		over = over || f != f.at(hour)
	}
	if !over {
		return
	}
	for _, e := range x.digits {
		x.endCopy(e)
	}
	for _, e := range x.texts {
		x.endCopy(e)
	}
}

func (x *Index) endCopy(e *entry) {
	if e.fate == nil || e.fate.value == e.fate.value.at(x.hour) {
		return
	}
	x.move(e, func() {
		was := e.fate
		e.fate = x.fates.use(was.value.at(x.hour))
		x.fates.drop(was)
	})
}

// at returns what a fate is in an hour since 1970.
func (f fate) at(hour int64) fate {
	f.copyOver = f.copyOver || f.archivedUntil > 0 && f.archivedUntil <= hour
	return f
}

// ArchiveChanges returns another number than before if a volume that is to be archived has joined the lists, or has changed.
func (x *Index) ArchiveChanges() uint64 { return x.toArchive.changes }

func (e *entry) archivedBefore(other *entry) bool {
	if a, b := e.rare.archive.rank, other.rare.archive.rank; a != b {
		return a < b
	}
	return before(other, e)
}
