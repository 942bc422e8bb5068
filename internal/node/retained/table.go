package retained

import (
	"bytes"
	"hash/maphash"
	"iter"
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/katbox/katbox/internal/model/volume"
)

// table holds the entries of volumes in little memory. An entry of a kubelet's volume takes 128
// bytes, if the name of its pod has no more than 43, and some 20 in the table's index. The zero
// table is empty and ready to use.
type table struct {
	entries     slab[entry]
	texts       slab[text]
	byHash      map[uint32]number // the last entry of those whose IDs have the same hash
	seed        maphash.Seed
	groups      interned[group]
	spaces      interned[space]
	fates       interned[fate]
	holds       holds
	clock       clock
	length      int
	buf, sought []byte // for texts
}

// entry is all that is kept of a volume, except its hold. Its text is the ID, the pod's UID, the
// pod's name, the time of publishing, and then
//
//   - of its [space], if that is in the text: namespace, verdict, namespace UID;
//   - of its owner, if that is confirmed: what appendOwner makes of it;
//   - of its group, if that is in the text: volume name, service account;
//   - of its [fate], if that is in the text: the terms.
type entry struct {
	since   int64 // the time of unpublishing; see [clock]
	size    size
	place   uint32 // in its heap, which makes removal by ID cheap
	group   number
	fate    number
	next    number // the next entry with the same hash
	more    number // where the text goes on
	project uint32
	text    [24]byte
}

// text is what does not fit into the one before.
type text struct {
	more number
	text [60]byte
}

// group is whose many volumes are.
type group struct {
	space                      number
	volumeName, serviceAccount string
	inText                     bool // each entry has the names in its text, because there are too many groups
}

func (g group) clone() group {
	g.volumeName, g.serviceAccount = strings.Clone(g.volumeName), strings.Clone(g.serviceAccount)
	return g
}

// space is a namespace, as far as the API server has told of it. The index has a list for each.
type space struct {
	namespace, namespaceUID string
	verdict                 volume.Verdict
	inText                  bool // each entry has these in its text, because there are too many spaces
}

func (s space) clone() space {
	s.namespace, s.namespaceUID = strings.Clone(s.namespace), strings.Clone(s.namespaceUID)
	return s
}

// maxGroups is how many groups there may be before further names go into the texts, how many spaces,
// and how many fates. Each takes up to 400 bytes, and names or limits that are all different would
// make one for each volume.
const maxGroups = 8192

// insert adds a record, whose ID must not be in the table.
func (t *table) insert(r *volume.Record) number {
	if t.byHash == nil {
		t.byHash, t.seed = map[uint32]number{}, maphash.MakeSeed()
	}
	since := t.clock.keep(r.Unpublished)
	n := t.entries.alloc()
	hash := t.hash(r.ID)
	inSpace, fewSpaces := t.spaces.useFew(space{namespace: r.Namespace, namespaceUID: r.Owner.NamespaceUID, verdict: r.Owner.Verdict},
		maxGroups)
	if !fewSpaces {
		inSpace = t.spaces.use(space{namespace: volume.OtherNamespaces, inText: true})
	}
	inGroup, fewGroups := t.groups.useFew(group{space: inSpace, volumeName: r.VolumeName, serviceAccount: r.ServiceAccount}, maxGroups)
	if !fewGroups {
		inGroup = t.groups.use(group{space: inSpace, inText: true})
	}
	f := fateOf(r)
	ofFate, fewFates := t.fates.useFew(f, maxGroups)
	if !fewFates {
		f.terms, f.inText = volume.Terms{}, true
		ofFate = t.fates.use(f)
	}
	*t.entry(n) = entry{since: since, group: inGroup, fate: ofFate, next: t.byHash[hash], project: r.Project}
	t.byHash[hash] = n
	t.write(n, r, !fewSpaces, !fewGroups, !fewFates)
	t.holds.add(n, r.Hold)
	t.length++
	return n
}

func (t *table) write(n number, r *volume.Record, spaceInText, groupInText, fateInText bool) {
	b := t.buf[:0]
	if !groupInText && isDerived(r.ID, r.Pod, r.VolumeName) {
		b = append(b, asDerived)
	} else {
		b = appendID(b, r.ID)
	}
	b = appendSeconds(appendText(appendPod(b, r.Pod), r.PodName), r.Published, t.first(n))
	if spaceInText {
		b = appendSpace(b, r)
	}
	if r.Owner.Verdict == volume.Confirmed {
		b = appendOwner(b, &r.Owner, r.PodName)
	}
	if groupInText {
		b = appendText(appendText(b, r.VolumeName), r.ServiceAccount)
	}
	if fateInText {
		b = appendTerms(b, r.Terms)
	}
	t.buf = b
	e := t.entry(n)
	rest := b[copy(e.text[:], b):]
	for more := &e.more; len(rest) > 0; {
		*more = t.texts.alloc()
		next := t.texts.at(*more)
		next.more = 0
		rest = rest[copy(next.text[:], rest):]
		more = &next.more
	}
}

// remove takes an entry out.
func (t *table) remove(n number) {
	e := t.entry(n)
	t.unlink(t.hash(t.id(n)), n, e.next)
	t.spaces.drop(t.group(n).space)
	t.groups.drop(e.group)
	t.fates.drop(e.fate)
	t.holds.remove(n)
	for more := e.more; more != 0; {
		next := t.texts.at(more).more
		t.texts.release(more)
		more = next
	}
	t.entries.release(n)
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
	n := t.byHash[t.hash(id)]
	if n == 0 {
		return 0
	}
	t.sought = appendID(t.sought[:0], id)
	for ; n != 0; n = t.entry(n).next {
		if t.hasID(n, t.sought) {
			return n
		}
	}
	return 0
}

// hasID reports whether an entry has the ID with this short form. No ID's short form is the
// beginning of another's.
func (t *table) hasID(n number, short []byte) bool {
	text := t.read(n)
	if text[0] != asDerived {
		return bytes.HasPrefix(text, short)
	}
	pod, _ := cutPod(text[1:])
	sum := volume.KubeletSum(pod, t.group(n).volumeName)
	return short[0] == asDigits && bytes.Equal(short[1:], sum[:])
}

func (t *table) hash(id volume.ID) uint32 { return uint32(maphash.String(t.seed, string(id))) }

func (t *table) entry(n number) *entry { return t.entries.at(n) }

// group returns what an entry has in common with others. It is not to be changed.
func (t *table) group(n number) *group { return t.groups.value(t.entry(n).group) }

// fate returns what is to become of an entry. It is not to be changed.
func (t *table) fate(n number) *fate { return t.fates.value(t.entry(n).fate) }

// unpublished returns when a volume was unpublished.
func (t *table) unpublished(n number) time.Time {
	return t.clock.time(t.entry(n).since)
}

// first returns when a volume was unpublished, as the time of publishing in its text refers to it: no step of the
// wall clock moves that.
func (t *table) first(n number) time.Time { return t.clock.first(t.entry(n).since) }

// space returns whose namespace an entry is in. It is not to be changed.
func (t *table) space(n number) *space { return t.spaces.value(t.group(n).space) }

// namespace returns the namespace of an entry.
func (t *table) namespace(n number) string {
	s := t.space(n)
	if !s.inText {
		return s.namespace
	}
	_, rest := cutSeconds(skipText(skipPod(skipID(t.read(n)))), time.Time{})
	own, _ := cutSpace(rest)
	return own.namespace
}

func (t *table) id(n number) volume.ID {
	id, _ := t.cutID(n, t.read(n))
	return id
}

// cutID cuts the ID off the text of an entry.
func (t *table) cutID(n number, text []byte) (volume.ID, []byte) {
	if text[0] == asDerived {
		pod, _ := cutPod(text[1:])
		return volume.KubeletID(pod, t.group(n).volumeName), text[1:]
	}
	return cutID(text)
}

func (t *table) pod(n number) volume.PodUID {
	pod, _ := cutPod(skipID(t.read(n)))
	return pod
}

func (t *table) record(n number) volume.Record {
	id, rest := t.cutID(n, t.read(n))
	pod, rest := cutPod(rest)
	podName, rest := viewText(rest)
	published, rest := cutSeconds(rest, t.first(n))
	g, s, f := *t.group(n), *t.space(n), *t.fate(n)
	if s.inText {
		s, rest = cutSpace(rest)
	}
	owner := volume.Owner{Verdict: s.verdict, NamespaceUID: s.namespaceUID}
	if s.verdict == volume.Confirmed {
		var packed packedOwner
		packed, rest = cutOwner(rest, podName)
		packed.unpack(&owner)
	}
	if g.inText {
		g.volumeName, rest = cutText(rest)
		g.serviceAccount, rest = cutText(rest)
	}
	if f.inText {
		f.terms = cutTerms(rest)
	}
	return volume.Record{
		ID: id, Pod: pod, Namespace: s.namespace, PodName: string(podName), VolumeName: g.volumeName, ServiceAccount: g.serviceAccount,
		Owner: owner, Phase: f.phase, Published: published, Unpublished: t.unpublished(n), Lifespan: f.lifespan,
		Terms: f.terms, Outcome: f.outcome, Hold: t.holds.of(n), Project: t.entry(n).project,
	}
}

// read returns the text of an entry, followed by arbitrary bytes. It is valid until the next read.
func (t *table) read(n number) []byte {
	e := t.entry(n)
	t.buf = append(t.buf[:0], e.text[:]...)
	for more := e.more; more != 0; {
		next := t.texts.at(more)
		t.buf = append(t.buf, next.text[:]...)
		more = next.more
	}
	return t.buf
}

// before orders by the time of unpublishing, as the keys do. The ID decides among equals, so that the order never
// depends on chance.
func (t *table) before(n, m number) bool {
	if a, b := t.entry(n).since, t.entry(m).since; a != b {
		return a < b
	}
	return t.id(n) < t.id(m)
}

// memory returns how many bytes the entries take.
func (t *table) memory() int { return t.entries.memory() + t.texts.memory() }

// chunkLength is how many values are allocated at a time: 64 KiB of them.
const chunkLength = 1 << 10

// slab holds values of one type, each under a number. The collector does not look inside if the
// type has no pointers. The zero slab is empty and ready to use. A slab never shrinks.
type slab[T any] struct {
	chunks [][]T
	used   number   // how many places have ever been in use
	free   []number // those that no longer are
}

// number is the number of a value in its slab. 0 is none.
type number = uint32

// alloc makes room for a value, which is not cleared, and returns its number.
func (s *slab[T]) alloc() number {
	if last := len(s.free) - 1; last >= 0 {
		n := s.free[last]
		s.free = s.free[:last]
		return n
	}
	if s.used == number(len(s.chunks)*chunkLength) {
		s.chunks = append(s.chunks, make([]T, chunkLength))
	}
	s.used++
	return s.used
}

// at returns the value with a number that alloc returned.
func (s *slab[T]) at(n number) *T {
	place := n - 1
	return &s.chunks[place/chunkLength][place%chunkLength]
}

func (s *slab[T]) release(n number) { s.free = append(s.free, n) }

// inUse goes through the numbers of all values.
func (s *slab[T]) inUse() iter.Seq[number] {
	return func(yield func(number) bool) {
		free := slices.Sorted(slices.Values(s.free))
		for n := number(1); n <= s.used; n++ {
			if len(free) > 0 && free[0] == n {
				free = free[1:]
			} else if !yield(n) {
				return
			}
		}
	}
}

// memory returns how many bytes the values take.
func (s *slab[T]) memory() int {
	var zero T
	return len(s.chunks) * chunkLength * int(unsafe.Sizeof(zero))
}
