package retained

import (
	"encoding/hex"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/katbox/katbox/internal/model/volume"
)

// entry is what the index keeps of a volume: 144 bytes, 64 for its owner, and the name of its pod. The
// IDs of a kubelet's volume are kept as the bytes that their digits stand for, and what many
// volumes have in common is kept once.
type entry struct {
	id        [idBytes]byte
	pod       uuid.UUID
	podName   string
	owner     *owner         // nil unless it is confirmed
	group     *shared[group] // nil, as the fate, unless the volume is retained or being deleted
	fate      *shared[fate]
	rare      *rare // nil for most
	published int64 // in seconds; 0 if that is not known
	since     int64 // when it was unpublished; see [clock]
	bytes     int64
	inodes    int32 // unmeasured while the size is not known
	project   uint32
	// The places in the heaps and in the list of what is to be measured.
	inClass, inTenant, inUnmeasured int32
	// wanted: a publish was asked for. going: its deletion was ordered. awake: it has an actor. kept: a pod has it
	// attached.
	wanted, going, awake, kept bool
}

// unmeasured is the number of inodes of a volume whose size is not known.
const unmeasured = -1

// group is whose many volumes are.
type group struct {
	list                                  *list // of their space
	volumeName, serviceAccount, ownerKind string
}

// space is a namespace, with what the API server has said of it. The index has a list for each.
type space struct {
	namespace, namespaceUID string
	verdict                 volume.Verdict
}

// fate is what is to become of many volumes.
type fate struct {
	phase    volume.Phase
	outcome  volume.Outcome
	lifespan time.Duration
	terms    volume.Terms
	// archivedUntil is in whole hours since 1970; 0 if the archive has no copy.
	archivedUntil int64
	// copyOver: that is over.
	copyOver bool
}

// owner is what is known of a confirmed owner, beside its group.
type owner struct {
	uid                 uuid.UUID
	name, job, jobIndex string
}

// rare is what few volumes have.
type rare struct {
	// named: one of id and pod is none that Kubernetes makes, and both are kept as texts. So is ownerUID.
	named    bool
	id       volume.ID
	pod      volume.PodUID
	ownerUID string
	// live is the record of a volume that is in use.
	live *volume.Record
	// held is what a person decided, which ends some time after the unpublish.
	held  volume.HoldKind
	after time.Duration
	texts *shared[holdTexts]
	// tries is how often in a row the volume could not be deleted, until when it is tried again; zero while it is not
	// postponed.
	tries int
	until time.Time
	// publish is the last one that was asked for, while its outcome is not known.
	publish any
	// archive is there while the volume is to be archived.
	archive *archiving
}

// holdTexts are often those of many volumes that a person decided about at once.
type holdTexts struct{ by, why string }

// mostReleaseTexts bounds the different texts while there are releases: a user who may release volumes may give
// each one another reason, of up to 1.3 KB, and there is no bound to how many volumes are released, as there is for
// pins. Further ones are in the record on disk alone; see the package store.
const mostReleaseTexts = 2048

// shared is a value that many share, pool has those with users.
type (
	shared[V any] struct {
		value V
		users int
	}
	pool[V comparable] map[V]*shared[V]
)

// use returns a value for one more user, drop takes one away.
func (p pool[V]) use(v V) *shared[V] {
	s := p[v]
	if s == nil {
		s = &shared[V]{value: v}
		p[v] = s
	}
	s.users++
	return s
}

func (p pool[V]) drop(s *shared[V]) {
	if s.users--; s.users == 0 {
		delete(p, s.value)
	}
}

// newEntry returns the entry of a volume of which nothing is known but its place.
func newEntry(id volume.ID, pod volume.PodUID) *entry {
	e := &entry{inodes: unmeasured}
	e.setPlace(id, pod)
	return e
}

func (e *entry) setPlace(id volume.ID, pod volume.PodUID) {
	var ofKubelet, isUUID bool
	e.id, ofKubelet = id.Digits()
	e.pod, isUUID = uuidOf(string(pod))
	if !ofKubelet || !isUUID {
		e.special().named, e.rare.id, e.rare.pod = true, id, pod
	} else if e.rare != nil {
		e.rare.named, e.rare.id, e.rare.pod = false, "", ""
	}
}

// special returns what few volumes have, to be changed.
func (e *entry) special() *rare {
	if e.rare == nil {
		e.rare = &rare{}
	}
	return e.rare
}

// tidy drops that where there is nothing.
func (e *entry) tidy() {
	if e.rare != nil && *e.rare == (rare{}) {
		e.rare = nil
	}
}

// phase is [volume.Unknown] for a volume of which nothing is known but its place.
func (e *entry) phase() volume.Phase {
	switch {
	case e.fate != nil:
		return e.fate.value.phase
	case e.rare != nil && e.rare.live != nil:
		return e.rare.live.Phase
	}
	return volume.Unknown
}

func (e *entry) isListed() bool { return e.phase() == volume.Retained && !e.wanted && !e.going }

// atRest reports whether a volume may go, or waits until it may.
func (e *entry) atRest() bool {
	return e.fate != nil && !e.wanted && !e.going && !e.awake && !e.kept
}

// decided notes that the outcome of the last publish is known.
func (e *entry) decided() {
	if e.wanted {
		e.wanted, e.rare.publish = false, nil
	}
}

// rest notes that the volume has no actor, how long it waits at least, and how often it could not be deleted.
func (e *entry) rest(then time.Time, tries int) {
	e.awake, e.going = false, false
	e.decided()
	e.postpone(then, tries)
}

func (e *entry) postpone(then time.Time, tries int) {
	if e.rare != nil || tries > 0 {
		e.special().until, e.rare.tries = then, tries
		e.tidy()
	}
}

func (e *entry) waits() bool { return e.rare != nil && !e.rare.until.IsZero() }

func (e *entry) hold() volume.HoldKind {
	if e.rare == nil {
		return volume.NoHold
	}
	return e.rare.held
}

func (e *entry) volumeID() volume.ID {
	if e.rare != nil && e.rare.named {
		return e.rare.id
	}
	text := append(make([]byte, 0, len(idPrefix)+2*idBytes), idPrefix...)
	return volume.ID(hex.AppendEncode(text, e.id[:]))
}

func (e *entry) podUID() volume.PodUID {
	if e.rare != nil && e.rare.named {
		return e.rare.pod
	}
	return volume.PodUID(e.pod.String())
}

func (e *entry) size() volume.Size {
	if e.inodes == unmeasured {
		return volume.Size{}
	}
	return volume.Size{Bytes: e.bytes, Inodes: int64(e.inodes)}
}

// fill takes over a record.
func (x *Index) fill(e *entry, r *volume.Record) {
	since, size := e.since, *e
	x.release(e)
	*e = entry{rare: e.rare, inodes: unmeasured, wanted: e.wanted, going: e.going, awake: e.awake, kept: e.kept}
	e.setPlace(r.ID, r.Pod)
	switch r.Phase {
	case volume.Unknown:
	case volume.Retained, volume.Deleting:
		e.since = x.clock.keep(r.Unpublished)
		if r.Phase == volume.Retained && e.since == since {
			e.bytes, e.inodes = size.bytes, size.inodes
		}
		e.podName, e.published, e.project = r.PodName, max(r.Published.Unix(), 0), r.Project
		e.fate = x.fates.use(fate{phase: r.Phase, outcome: r.Outcome, lifespan: r.Lifespan, terms: r.Terms,
			archivedUntil: max(r.ArchivedUntil.Unix()/3600, 0)}.at(x.hour))
		in := x.listOf(space{namespace: r.Namespace, namespaceUID: r.Owner.NamespaceUID, verdict: r.Owner.Verdict})
		e.group = x.groups.use(group{list: in, volumeName: r.VolumeName, serviceAccount: r.ServiceAccount, ownerKind: r.Owner.Kind})
		in.users++
		e.owner = ownerOf(r)
		if e.owner != nil && e.owner.uid == uuid.Nil && r.Owner.UID != "" {
			e.special().ownerUID = r.Owner.UID
		}
		x.hold(e, r.Hold)
		if a := archivingOf(r); a != nil {
			e.special().archive = a
		}
	default:
		live := *r
		e.special().live = &live
	}
	e.tidy()
}

// release forgets what an entry has of a record.
func (x *Index) release(e *entry) {
	if e.fate != nil {
		in := e.group.value.list
		x.groups.drop(e.group)
		x.fates.drop(e.fate)
		x.dropList(in)
	}
	if e.rare == nil {
		return
	}
	if e.rare.texts != nil {
		x.holds.drop(e.rare.texts)
	}
	e.rare.live, e.rare.ownerUID, e.rare.held, e.rare.after, e.rare.texts, e.rare.archive = nil, "", volume.NoHold, 0, nil, nil
}

// hold takes over what a person decided.
func (x *Index) hold(e *entry, h volume.Hold) {
	if h.Kind == volume.NoHold {
		return
	}
	texts := holdTexts{by: h.By, why: h.Why}
	if h.Kind == volume.Released && len(x.holds) >= mostReleaseTexts && x.holds[texts] == nil {
		texts = holdTexts{}
	}
	s := e.special()
	s.held, s.after, s.texts = h.Kind, h.For, x.holds.use(texts)
}

// ownerOf returns what is to be kept of an owner. The name of most is the beginning of the pod's, and they share it.
func ownerOf(r *volume.Record) *owner {
	if r.Owner.Verdict != volume.Confirmed {
		return nil
	}
	part := func(text string) string {
		if strings.HasPrefix(r.PodName, text) {
			return r.PodName[:len(text)]
		}
		return text
	}
	uid, _ := uuidOf(r.Owner.UID)
	return &owner{uid: uid, name: part(r.Owner.Name), job: part(r.Owner.Job), jobIndex: r.Owner.JobIndex}
}

// record returns the record of a volume.
func (x *Index) record(e *entry) volume.Record {
	switch {
	case e.fate != nil:
		r := x.shown(e)
		r.ID, r.Pod = e.volumeID(), e.podUID()
		switch {
		case e.rare != nil && e.rare.ownerUID != "":
			r.Owner.UID = e.rare.ownerUID
		case e.owner != nil && e.owner.uid != uuid.Nil:
			r.Owner.UID = e.owner.uid.String()
		}
		return r
	case e.phase() == volume.Unknown:
		return volume.Record{ID: e.volumeID(), Pod: e.podUID()}
	}
	return *e.rare.live
}

// shown returns the record of a volume that is retained or being deleted without its ID, its pod's and its
// owner's UID: it allocates nothing.
func (x *Index) shown(e *entry) volume.Record {
	g, f := &e.group.value, &e.fate.value
	s := &g.list.space
	r := volume.Record{
		Namespace: s.namespace, PodName: e.podName, VolumeName: g.volumeName, ServiceAccount: g.serviceAccount,
		Owner: volume.Owner{Verdict: s.verdict, NamespaceUID: s.namespaceUID, Kind: g.ownerKind}, Phase: f.phase,
		Unpublished: x.clock.time(e.since), Lifespan: f.lifespan, Terms: f.terms, Outcome: f.outcome, Project: e.project,
	}
	if e.published > 0 {
		r.Published = time.Unix(e.published, 0)
	}
	if e.owner != nil {
		r.Owner.Name, r.Owner.Job, r.Owner.JobIndex = e.owner.name, e.owner.job, e.owner.jobIndex
	}
	if f.archivedUntil > 0 {
		r.ArchivedUntil = time.Unix(f.archivedUntil*3600, 0)
	}
	if e.rare != nil && e.rare.archive != nil {
		r.Owner.Seal = e.rare.archive.seal
	}
	if e.hold() != volume.NoHold {
		r.Hold = volume.Hold{Kind: e.rare.held, For: e.rare.after, By: e.rare.texts.value.by, Why: e.rare.texts.value.why}
	}
	return r
}

// The ID of a kubelet's volume is idPrefix and the digits of idBytes.
const (
	idPrefix = "csi-"
	idBytes  = 32
)

// uuidOf returns the bytes of a UUID as Kubernetes writes it, in lower case; zero for another text.
func uuidOf(text string) (id uuid.UUID, ok bool) {
	if len(text) != len("01234567-89ab-cdef-0123-456789abcdef") || text != strings.ToLower(text) { // uuid.Parse takes other forms, too
		return id, false
	}
	id, err := uuid.Parse(text)
	return id, err == nil
}
