package retained

import (
	"cmp"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/katbox/katbox/internal/model/volume"
)

// recheckedOwners is how many owners [Index.Recheck] takes at a time.
const recheckedOwners = 5000

// owners knows the listed volumes of owners that make pods over and over, and which of them goes first because there are
// enough. A cluster may have an owner for each pod, so there is nothing for each owner: its volumes stand side by side. The
// zero owners is empty and ready to use.
type owners struct {
	// limited: not all volumes of each owner stay. Otherwise nothing is kept here.
	limited bool
	// listed has the volumes of repeated pods, free those of them that may go because there are enough: by owner, and then in
	// the order in which they were unpublished.
	listed, free sorted
	// suspects may have more volumes than they may; suspected has the same. checked is the last one that recheck took.
	suspects  []ownerKey
	suspected map[ownerKey]bool
	checked   ownerKey
	// stay is that of surplusOf, and empty outside of it.
	stay map[podKey]bool
}

// ownerKey says which pods count together: those of one owner that ended in the same way. A pod of which that is not known
// may have succeeded, so it pushes no failure out.
type ownerKey struct {
	namespace, namespaceUID, kind, name string
	outcome                             volume.Outcome
}

// compare orders keys in any way. Most differ in the name alone.
func (k *ownerKey) compare(other *ownerKey) int {
	if c := strings.Compare(k.namespace, other.namespace); c != 0 {
		return c
	}
	if c := strings.Compare(k.name, other.name); c != 0 {
		return c
	}
	return cmp.Or(
		strings.Compare(k.namespaceUID, other.namespaceUID), strings.Compare(k.kind, other.kind), cmp.Compare(k.outcome, other.outcome),
	)
}

// ownerKey is only for a volume that is retained. ok is false for one whose pod is no repeated one, or whose owner is not
// confirmed.
func (e *entry) ownerKey() (k ownerKey, ok bool) {
	if e.owner == nil {
		return k, false
	}
	of := &e.group.value
	in := &of.list.space
	k = ownerKey{namespace: in.namespace, namespaceUID: in.namespaceUID, kind: of.ownerKind, name: e.owner.name, outcome: e.fate.value.outcome}
	switch k.kind {
	case "ReplicaSet", "StatefulSet":
	case "Job":
		if name, ok := cronJobOf(k.name, e.published); ok {
			k.kind, k.name = "CronJob", name
		}
	default:
		return k, false
	}
	return k, true
}

// mostDelay is how long after its time a CronJob's pod may begin to be taken for one.
const mostDelay = 31 * 24 * time.Hour

// cronJobOf returns the name of the CronJob that made a Job. It calls its Jobs by its own name and the minute that they
// were scheduled for, counted since 1970; a pod of one begins then or later. published is in seconds.
func cronJobOf(job string, published int64) (name string, ok bool) {
	at, minute, of := len(job), int64(0), int64(1)
	for at > 0 && '0' <= job[at-1] && job[at-1] <= '9' && of < 1e12 {
		at--
		minute += int64(job[at]-'0') * of
		of *= 10
	}
	late := published - minute*60
	if at < 2 || job[at-1] != '-' || late < -60 || late > int64(mostDelay/time.Second) {
		return "", false
	}
	return job[:at-1], true
}

// podKey tells pods apart. Few have a UID that is a text.
type podKey struct {
	uid  uuid.UUID
	text volume.PodUID
}

func (e *entry) podKey() podKey {
	if e.rare != nil && e.rare.named {
		return podKey{text: e.rare.pod}
	}
	return podKey{uid: e.pod}
}

// join adds a volume that is listed, part takes it out.
func (o *owners) join(e *entry) {
	if key, ok := o.keyOf(e); ok {
		o.insert(&o.listed, &key, e)
	}
}

func (o *owners) part(e *entry) {
	if key, ok := o.keyOf(e); ok {
		o.listed.remove(place(&o.listed, &key, e))
	}
}

// enter adds a volume that is at rest, leave takes it out. One that is pinned or not listed does not go because there are
// enough.
func (o *owners) enter(e *entry) {
	if key, ok := o.keyOf(e); ok && e.class().tier <= other {
		o.insert(&o.free, &key, e)
	}
}

func (o *owners) leave(e *entry) {
	if key, ok := o.keyOf(e); ok && e.class().tier <= other {
		o.free.remove(place(&o.free, &key, e))
	}
}

// keyOf returns the key of a volume that counts: one that is listed, where not all stay.
func (o *owners) keyOf(e *entry) (k ownerKey, ok bool) {
	if !o.limited || !e.isListed() {
		return k, false
	}
	return e.ownerKey()
}

// insert adds an entry, and lets the next surplus look at its owner if there are others of it.
func (o *owners) insert(l *sorted, key *ownerKey, e *entry) {
	p := place(l, key, e)
	previous := p
	for _, beside := range []*entry{l.before(&previous), l.at(p)} {
		if beside != nil && beside.compareOwner(key) == 0 {
			o.doubt(key)
			break
		}
	}
	l.insert(p, e)
}

// place returns where the entry with that key is, or where it is to be.
func place(l *sorted, key *ownerKey, e *entry) position {
	return l.search(func(other *entry) bool {
		c := other.compareOwner(key)
		return c < 0 || c == 0 && before(other, e)
	})
}

// compareOwner is only for an entry of owners.
func (e *entry) compareOwner(key *ownerKey) int {
	k, _ := e.ownerKey()
	return k.compare(key)
}

// of returns where the volumes of an owner begin, after returns where they end.
func (l *sorted) of(key *ownerKey) position {
	return l.search(func(e *entry) bool { return e.compareOwner(key) < 0 })
}

func (l *sorted) after(key *ownerKey) position {
	return l.search(func(e *entry) bool { return e.compareOwner(key) <= 0 })
}

// doubt lets the next surplus look at an owner.
func (o *owners) doubt(key *ownerKey) {
	if o.suspected[*key] {
		return
	}
	if o.suspected == nil {
		o.suspected = map[ownerKey]bool{}
	}
	o.suspected[*key] = true
	o.suspects = append(o.suspects, *key)
}

// surplus returns a volume of an owner of which there are enough others, and which was unpublished at born or before; nil if
// there is none among the suspects.
func (o *owners) surplus(may func(namespace string) volume.PerOwner, born int64) *entry {
	for len(o.suspects) > 0 {
		last := len(o.suspects) - 1
		key := &o.suspects[last]
		if e := o.surplusOf(key, may(key.namespace), born); e != nil {
			return e
		}
		delete(o.suspected, *key)
		o.suspects[last] = ownerKey{}
		o.suspects = o.suspects[:last]
	}
	o.suspects, o.suspected = nil, nil // a start may have made them long
	return nil
}

// surplusOf returns the first volume that may go, of a pod that is neither among the first nor among the last ones. It looks
// at volumes of those pods alone, and at the one that it returns.
func (o *owners) surplusOf(key *ownerKey, may volume.PerOwner, born int64) *entry {
	if may == (volume.PerOwner{}) {
		return nil
	}
	if o.stay == nil {
		o.stay = map[podKey]bool{}
	}
	defer clear(o.stay)
	for p := o.listed.after(key); ; {
		e := o.listed.before(&p)
		if e == nil || e.compareOwner(key) != 0 {
			return nil // there are no others
		}
		if len(o.stay) == may.Last && !o.stay[e.podKey()] {
			break
		}
		o.stay[e.podKey()] = true
	}
	for e := range o.listed.from(o.listed.of(key)) {
		if len(o.stay) == may.Last+may.First && !o.stay[e.podKey()] || e.compareOwner(key) != 0 {
			break
		}
		o.stay[e.podKey()] = true
	}
	for e := range o.free.from(o.free.of(key)) {
		switch {
		case e.since > born || e.compareOwner(key) != 0:
			return nil
		case !o.stay[e.podKey()]:
			return e
		}
	}
	return nil
}

// recheck lets the next surplus look at some further owners.
func (o *owners) recheck() {
	for range recheckedOwners {
		e := o.free.at(o.free.after(&o.checked))
		if e == nil {
			o.checked = ownerKey{}
			return
		}
		o.checked, _ = e.ownerKey()
		o.doubt(&o.checked)
	}
}
