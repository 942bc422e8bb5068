package lifespan

import (
	"bytes"
	"errors"
	"hash/maphash"
	"time"

	"github.com/katbox/katbox/internal/offheap"
	"github.com/katbox/katbox/internal/volume"
)

// table holds the entries of volumes in little memory: there may be a million. An
// entry of a kubelet's volume takes 128 bytes, if the name of its pod has no more
// than 36, and some 20 in the table's index. The zero table is empty and ready to
// use.
type table struct {
	entries offheap.Slab[entry]
	texts   offheap.Slab[text]
	// byHash is the last entry of those whose IDs have the same hash.
	byHash map[uint32]number
	seed   maphash.Seed
	lots   shared[lot]
	clock  clock
	length int
	// buf and sought are for names.
	buf, sought []byte
}

// number is that of an entry in its table. 0 is none.
type number = uint32

// entry is all that is kept of a volume. Its text is the ID, the pod's UID, the pod's
// name, the time of publishing in seconds, and the names that are not in its lot. A
// volume that sleeps has no targets.
type entry struct {
	// since is the time of unpublishing, in nanoseconds from the clock's origin.
	since int64
	size  size
	// place is where the entry is in its heap, which makes removal by ID cheap.
	place uint32
	// lot is the number of what it has in common with others.
	lot uint32
	// next is the next entry with the same hash.
	next number
	// more is where the text goes on.
	more number
	text [32]byte
}

// text is what does not fit into the one before.
type text struct {
	more number
	text [60]byte
}

// lot is what many volumes have in common.
type lot struct {
	names
	phase    volume.Phase
	lifespan time.Duration
	// base is a time that the time of unpublishing is told from.
	base time.Time
	// inText: the names are in the text of each entry, because there are too many lots.
	inText bool
}

// names are those that most volumes share with others.
type names struct {
	namespace, volumeName, serviceAccount string
}

// maxLots is how many lots there may be before further names go into the texts. A lot takes
// some 400 bytes of the heap, and names that are all different would make one for each
// volume.
const maxLots = 8192

// insert adds a record, whose ID must not be in the table.
func (t *table) insert(r *volume.Record) number {
	if t.byHash == nil {
		t.byHash, t.seed = map[uint32]number{}, maphash.MakeSeed()
	}
	since, base := t.clock.note(r.Unpublished)
	n := t.entries.Alloc()
	hash := t.hash(r.ID)
	l := lot{names: namesOf(r), phase: r.Phase, lifespan: r.Lifespan, base: base}
	if t.lots.len() >= maxLots && !t.lots.has(l) {
		l.names, l.inText = names{}, true
	}
	*t.entry(n) = entry{since: since, lot: t.lots.use(l), next: t.byHash[hash]}
	t.byHash[hash] = n
	t.write(n, r, l.inText)
	t.length++
	return n
}

func namesOf(r *volume.Record) names {
	return names{namespace: r.Namespace, volumeName: r.VolumeName, serviceAccount: r.ServiceAccount}
}

func (t *table) write(n number, r *volume.Record, withNames bool) {
	t.buf = appendText(appendPod(appendID(t.buf[:0], r.ID), r.Pod), r.PodName)
	t.buf = appendSeconds(t.buf, r.Published)
	if withNames {
		t.buf = appendText(appendText(appendText(t.buf, r.Namespace), r.VolumeName), r.ServiceAccount)
	}
	e := t.entry(n)
	rest := t.buf[copy(e.text[:], t.buf):]
	for more := &e.more; len(rest) > 0; {
		*more = t.texts.Alloc()
		next := t.texts.At(*more)
		next.more = 0
		rest = rest[copy(next.text[:], rest):]
		more = &next.more
	}
}

// remove takes an entry out.
func (t *table) remove(n number) {
	e := t.entry(n)
	t.unlink(t.hash(t.id(n)), n, e.next)
	t.lots.drop(e.lot)
	for more := e.more; more != 0; {
		next := t.texts.At(more).more
		t.texts.Free(more)
		more = next
	}
	t.entries.Free(n)
	t.length--
}

// unlink takes an entry from those with the same hash.
func (t *table) unlink(hash uint32, n, next number) {
	switch first := t.byHash[hash]; {
	case first != n:
		before := first
		for t.entry(before).next != n {
			before = t.entry(before).next
		}
		t.entry(before).next = next
	case next == 0:
		delete(t.byHash, hash)
	default:
		t.byHash[hash] = next
	}
}

// find returns the entry of a volume, or 0.
func (t *table) find(id volume.ID) number {
	if t.length == 0 {
		return 0
	}
	t.sought = appendID(t.sought[:0], id)
	for n := t.byHash[t.hash(id)]; n != 0; n = t.entry(n).next {
		// No ID's short form is the beginning of another's.
		if bytes.HasPrefix(t.read(n), t.sought) {
			return n
		}
	}
	return 0
}

func (t *table) hash(id volume.ID) uint32 { return uint32(maphash.String(t.seed, string(id))) }

func (t *table) entry(n number) *entry { return t.entries.At(n) }

// lot returns what an entry has in common with others.
func (t *table) lot(n number) lot { return t.lots.value(t.entry(n).lot) }

// unpublished returns when a volume was.
func (t *table) unpublished(n number) time.Time {
	return t.clock.time(t.entry(n).since, t.lot(n).base)
}

// id returns the ID of a volume.
func (t *table) id(n number) volume.ID {
	id, _ := cutID(t.read(n))
	return id
}

// names returns the volume ID and the pod UID.
func (t *table) names(n number) (volume.ID, volume.PodUID) {
	id, rest := cutID(t.read(n))
	pod, _ := cutPod(rest)
	return id, pod
}

// record returns the volume's record.
func (t *table) record(n number) volume.Record {
	id, rest := cutID(t.read(n))
	pod, rest := cutPod(rest)
	podName, rest := cutText(rest)
	published, rest := cutSeconds(rest)
	l := t.lot(n)
	if l.inText {
		l.namespace, rest = cutText(rest)
		l.volumeName, rest = cutText(rest)
		l.serviceAccount, _ = cutText(rest)
	}
	return volume.Record{
		ID: id, Pod: pod, Namespace: l.namespace, PodName: podName, VolumeName: l.volumeName, ServiceAccount: l.serviceAccount,
		Phase: l.phase, Published: published, Unpublished: t.unpublished(n), Lifespan: l.lifespan,
	}
}

// read returns the text of an entry, with what happens to follow it. It is good
// until the next one is read.
func (t *table) read(n number) []byte {
	e := t.entry(n)
	t.buf = append(t.buf[:0], e.text[:]...)
	for more := e.more; more != 0; {
		next := t.texts.At(more)
		t.buf = append(t.buf, next.text[:]...)
		more = next.more
	}
	return t.buf
}

// before orders by the time of unpublishing. The ID decides among equals, so that
// the order never depends on chance.
func (t *table) before(n, m number) bool {
	if a, b := t.entry(n).since, t.entry(m).since; a != b {
		return a < b
	}
	return t.id(n) < t.id(m)
}

// close frees the memory. The table is empty then.
func (t *table) close() error {
	err := errors.Join(t.entries.Close(), t.texts.Close())
	*t = table{}
	return err
}
