// Package retained is the index of all inline volumes of a node, those that are in use and those that
// are retained. A volume stays in it from its first publish to its tombstone. It knows which retained
// volume goes next, how long one that could not be deleted has to wait, and what the volumes take on
// the disk. It lists them, the newest first, for people.
//
// It is a map of structs. A node may retain a million volumes, so a struct is small; see entry. The
// package does no I/O, starts no goroutine and never asks for the time.
package retained

import (
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// Index holds the volumes and knows which one goes next. The zero Index is empty and ready to use. Its
// exported fields do not change once it holds volumes. It is not safe for concurrent use.
//
// A volume goes only while it is at rest: retained, without an actor, attached to no pod, and not
// postponed. Volumes go in this order:
//
//  1. those whose time is over ([Index.Over]);
//  2. of a namespace that retains more than it may ([Index.Surplus]): its own, in the order that
//     follows in 4;
//  3. of an owner with more pods than volumes of it may stay ([Index.Repeated]): those of pods between the first and
//     the last ones, the oldest first;
//  4. when room is needed ([Index.Early]): the released ones, those of pods that Succeeded, then all
//     others; of those with the same outcome the archived ones go first. Among these it is the deadline
//     under the pressure factor that counts, or, in a fair index, how much the namespace retains;
//  5. when that was not enough ([Index.Guaranteed]): those that are younger than MinLifespan, then
//     the pinned ones.
type Index struct {
	// MinLifespan is how long a volume is kept that is not released, whatever the pressure is.
	MinLifespan time.Duration
	// Fair: a namespace that retains more than an average one loses its oldest volume first.
	Fair bool
	// MaxRetained, if set, returns how much a namespace may retain. Zero bytes or inodes set no limit.
	// It may return another limit later; see [Index.Recheck].
	MaxRetained func(namespace string) volume.Size
	// PerOwner, if set, returns of how many pods of one Job, CronJob, ReplicaSet or StatefulSet of a namespace the
	// volumes stay; pods that ended in different ways count apart. It may return other numbers later; see [Index.Recheck].
	PerOwner func(namespace string) volume.PerOwner

	// digits has the volumes with a kubelet's ID, by its digits, texts all others.
	digits map[[idBytes]byte]*entry
	texts  map[volume.ID]*entry
	// resized is that of Watch, sized how many volumes there were when it was called last.
	resized func(bytes int)
	sized   int
	clock   clock
	groups  pool[group]
	fates   pool[fate]
	holds   pool[holdTexts]
	// hour is the last one of [Index.EndCopies], since 1970. ending: it has not looked at those after ended, in the order of lists.
	hour   int64
	ending bool
	ended  volume.Key

	// These have the volumes at rest.
	classes   classes
	postponed order
	// These have the retained volumes, except those that are about to be published or deleted.
	lists      map[space]*list
	namespaces map[string]*namespace
	tenants    tenants
	owners     owners
	toArchive  toArchive
	changes    uint64
	listed     int
	unmeasured []*entry // those without a size
	bytes      int64    // the sum of the others' sizes
}

// Known is what the index knows of a volume.
type Known struct {
	volume.Record
	Size  volume.Size // zero if it is not known: the data directory has at least its own inode
	Tries int         // how often the volume could not be deleted
	// Wanted: a publish was asked for whose outcome is not known. Going: its deletion was ordered.
	Wanted, Going bool
}

// Rests reports whether the volume is retained, or waits to be deleted again, and is neither to be published nor being
// deleted. A pod uses any other one, or it is about to change.
func (k *Known) Rests() bool {
	return (k.Phase == volume.Retained || k.Phase == volume.Deleting) && !k.Wanted && !k.Going
}

// Follow tells the index what the wall clock shows now. The times that it returns go by that: after a step of the
// wall clock all of them are as far from now as they were before. It costs a subtraction. The caller does so before
// it asks for what people see; deadlines do not need it.
func (x *Index) Follow(now time.Time) {
	if x.clock.follow(now) {
		x.changes++
	}
}

// Look returns what is known of a volume. ok is false for one that is not known, and for one of which
// nothing is known but that it is wanted.
func (x *Index) Look(id volume.ID) (k Known, ok bool) {
	e := x.find(id)
	if e == nil || e.phase() == volume.Unknown {
		return Known{}, false
	}
	return x.known(e), true
}

func (x *Index) known(e *entry) Known {
	k := Known{Record: x.record(e), Size: e.size(), Wanted: e.wanted, Going: e.going}
	if e.rare != nil {
		k.Tries = e.rare.tries
	}
	return k
}

// Has reports whether the index has the volume, as one of that pod.
func (x *Index) Has(p volume.Place) bool {
	e := x.find(p.ID)
	return e != nil && e.podUID() == p.Pod
}

// Len returns the number of volumes.
func (x *Index) Len() int { return len(x.digits) + len(x.texts) }

// Listed returns how many volumes the lists contain.
func (x *Index) Listed() int { return x.listed }

// IsListed reports whether the lists contain a volume.
func (x *Index) IsListed(id volume.ID) bool {
	e := x.find(id)
	return e != nil && e.isListed()
}

// IsGoing reports whether a volume's deletion was ordered.
func (x *Index) IsGoing(id volume.ID) bool {
	e := x.find(id)
	return e != nil && e.going
}

// Put adds a volume that is at rest, or takes over its record; see [Index.Set].
func (x *Index) Put(r volume.Record) {
	e := x.add(r.ID, r.Pod)
	x.change(e, func() {
		x.fill(e, &r)
		e.rest(time.Time{}, 0)
	})
}

// Set takes over the record of a volume that has an actor; nil if nothing is known of it any more. after is
// the last publish that the actor has seen: if [Index.Publish] has seen a later one it changes nothing.
//
// The size of a volume is known until its record says that it was unpublished at another time. The index does
// not keep the targets of a retained volume, which has none. The Unpublished times of all records must carry
// a monotonic clock reading, or none of them: times of both kinds have no common order when the wall clock was
// stepped.
func (x *Index) Set(id volume.ID, r *volume.Record, after any) {
	e := x.find(id)
	if e != nil && e.wanted && e.rare.publish != after || e == nil && r == nil {
		return
	}
	if r == nil {
		r = &volume.Record{ID: id, Pod: e.podUID()}
	}
	e = x.add(id, r.Pod)
	x.change(e, func() {
		e.awake, e.going = true, e.going && !r.Phase.Live()
		e.decided()
		x.fill(e, r)
	})
}

// Rest notes that the actor of a volume has ended, and takes over its record if Set has not been told the same. tries
// is how often in a row the volume could not be deleted; if it could not, it does not go before then, whatever its
// deadline is. A record in phase [volume.Deleting], whose deletion a crash interrupted, is due at once.
func (x *Index) Rest(r volume.Record, then time.Time, tries int) {
	e := x.add(r.ID, r.Pod)
	if e.isListed() && r.Phase == volume.Retained && e.since == x.clock.since(r.Unpublished) {
		x.move(e, func() { e.rest(then, tries) })
		return
	}
	x.change(e, func() {
		x.fill(e, &r)
		e.rest(then, tries)
	})
}

// Wake notes that a volume has an actor: it does not go until [Index.Rest].
func (x *Index) Wake(id volume.ID) {
	if e := x.find(id); e != nil {
		x.move(e, func() {
			e.awake = true
			e.postpone(time.Time{}, 0)
		})
	}
}

// Keep says whether a pod has a volume attached: while it has, the volume does not go.
func (x *Index) Keep(id volume.ID, keep bool) {
	if e := x.find(id); e != nil {
		x.move(e, func() { e.kept = keep })
	}
}

// Publish notes that a publish of a volume was asked for, which is compared with others by ==. Until its outcome is
// known the volume is in no list and does not go.
func (x *Index) Publish(p volume.Place, publish any) {
	e := x.add(p.ID, p.Pod)
	x.change(e, func() {
		e.wanted = true
		e.special().publish = publish
	})
}

// Order notes that the deletion of a volume was ordered, and returns what is known of it. From then on it is in no list.
func (x *Index) Order(id volume.ID) Known {
	e := x.find(id)
	k := x.known(e)
	x.change(e, func() { e.going, e.awake = true, true })
	return k
}

// Forget removes a volume.
func (x *Index) Forget(id volume.ID) {
	e := x.find(id)
	if e == nil {
		return
	}
	x.leave(e)
	x.release(e)
	if key, ok := id.Digits(); ok {
		delete(x.digits, key)
	} else {
		delete(x.texts, id)
	}
	x.recount()
}

func (x *Index) find(id volume.ID) *entry {
	if key, ok := id.Digits(); ok {
		return x.digits[key]
	}
	return x.texts[id]
}

// add returns the entry of a volume, which it adds if there is none.
func (x *Index) add(id volume.ID, pod volume.PodUID) *entry {
	if e := x.find(id); e != nil {
		return e
	}
	if x.digits == nil {
		x.digits, x.texts = map[[idBytes]byte]*entry{}, map[volume.ID]*entry{}
		x.groups, x.fates, x.holds = pool[group]{}, pool[fate]{}, pool[holdTexts]{}
		x.classes, x.postponed = classes{}, order{place: (*entry).classPlace, before: sooner}
		x.lists, x.namespaces = map[space]*list{}, map[string]*namespace{}
		x.tenants.limited, x.owners.limited = x.MaxRetained != nil, x.PerOwner != nil
	}
	e := newEntry(id, pod)
	if key, ok := id.Digits(); ok {
		x.digits[key] = e
	} else {
		x.texts[e.rare.id] = e
	}
	x.recount()
	return e
}

// change changes an entry, and move one thing of it that is nothing to the lists.
func (x *Index) change(e *entry, how func()) {
	x.leave(e)
	how()
	x.enter(e)
}

func (x *Index) move(e *entry, how func()) {
	x.rise(e)
	how()
	x.settle(e)
}

// enter puts an entry where it belongs, leave takes it out of there.
func (x *Index) enter(e *entry) {
	if e.isListed() {
		x.listed++
		x.addSize(e)
		x.list(e)
		x.tenants.join(e)
		x.owners.join(e)
		x.toArchive.join(e)
	}
	x.settle(e)
}

func (x *Index) leave(e *entry) {
	x.rise(e)
	if e.isListed() {
		x.listed--
		x.dropSize(e)
		x.unlist(e)
		x.tenants.part(e)
		x.owners.part(e)
		x.toArchive.part(e)
	}
}

// settle puts an entry that is at rest into the heaps, rise takes it out of them.
func (x *Index) settle(e *entry) {
	x.endCopy(e)
	switch {
	case !e.atRest():
	case e.waits():
		x.postponed.push(e)
	default:
		x.classes.push(e)
		x.tenants.enter(e)
		x.owners.enter(e)
	}
}

func (x *Index) rise(e *entry) {
	switch {
	case !e.atRest():
	case e.waits():
		x.postponed.remove(e)
	default:
		x.classes.remove(e)
		x.tenants.leave(e)
		x.owners.leave(e)
	}
}

// Resume ends the waits that are over at now. The next wait is over at the time that it returns; ok
// is false when no volume waits.
func (x *Index) Resume(now time.Time) (next time.Time, ok bool) {
	for first := x.postponed.first(); first != nil; first = x.postponed.first() {
		if first.rare.until.After(now) {
			return first.rare.until, true
		}
		x.move(first, func() { first.rare.until = time.Time{} }) // its tries are kept
	}
	return time.Time{}, false
}

// Waiting returns how many volumes are postponed.
func (x *Index) Waiting() int { return x.postponed.Len() }

func sooner(a, b *entry) bool { return a.rare.until.Before(b.rare.until) }

const (
	// resizeStep is by how many volumes the index grows or shrinks before it says so.
	resizeStep = 4096
	// volumeBytes is about what a volume takes; see the benchmark of the index.
	volumeBytes = 360
	// garbage is how much garbage may wait for a collection in a process with a large index: about
	// twice the daemon's heap without the index.
	garbage = 32 << 20
)

// Watch calls resized with about how many bytes the index takes, now and whenever that has changed by much.
func (x *Index) Watch(resized func(bytes int)) {
	x.resized, x.sized = resized, x.Len()
	resized(x.sized * volumeBytes)
}

func (x *Index) recount() {
	if n := x.Len(); x.resized != nil && (n-x.sized >= resizeStep || x.sized-n >= resizeStep) {
		x.sized = n
		x.resized(n * volumeBytes)
	}
}

// GCPercent returns the garbage collector's target ([debug.SetGCPercent]) for a process with an index of that
// many bytes. By default the heap may double between two collections. The index hardly changes, so the room to
// double would be wasted.
func GCPercent(index int) int { return 100 * garbage / (garbage + index) }
