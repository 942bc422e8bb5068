package retained

import (
	"encoding/binary"
	"slices"

	"github.com/katbox/katbox/internal/model/volume"
)

// The owner of most pods is a Job, or something like it. Its name is the beginning of the pod's
// name, and the label that names the Job says the same. Such an owner takes 19 bytes; 16 of them are
// its UID.

// The first byte of a packed owner has the number of its kind in the lowest three bits. The other
// bits say what follows.
const (
	kindBits = 1<<3 - 1
	// uidDigits: the UID is the bytes of a UUID; uidText: it is a text. Without both it is empty.
	uidDigits = 1 << 3
	uidText   = 1 << 4
	// jobIsName: the job has the owner's name; hasJob: it has another one.
	jobIsName = 1 << 5
	hasJob    = 1 << 6
	hasIndex  = 1 << 7
)

// kinds are those of most owners. Another kind is a text, and has the number otherKind.
var kinds = []string{"", "Job", "ReplicaSet", "StatefulSet", "DaemonSet", "Workflow", "Node"}

const otherKind = kindBits

// appendOwner appends what its space does not say of a confirmed owner.
func appendOwner(b []byte, o *volume.Owner, podName string) []byte {
	first := len(b)
	if kind := slices.Index(kinds, o.Kind); kind >= 0 {
		b = append(b, byte(kind))
	} else {
		b = appendText(append(b, otherKind), o.Kind)
	}
	b = appendLike(b, o.Name, podName)
	if o.UID != "" {
		at := len(b)
		b = appendPod(b, volume.PodUID(o.UID))
		if b[at] == asDigits {
			b[first] |= uidDigits
		} else {
			b[first] |= uidText
		}
		b = slices.Delete(b, at, at+1) // the form is in the first byte
	}
	switch o.Job {
	case "":
	case o.Name:
		b[first] |= jobIsName
	default:
		b[first] |= hasJob
		b = appendLike(b, o.Job, podName)
	}
	if o.JobIndex != "" {
		b[first] |= hasIndex
		b = appendText(b, o.JobIndex)
	}
	return b
}

// packedOwner is an owner that appendOwner has appended. It is valid as long as the text that it was
// cut from.
type packedOwner struct {
	first            byte
	kind, uid, index []byte
	name, job        like
}

// cutOwner cuts off an owner that appendOwner has appended.
func cutOwner(b, podName []byte) (o packedOwner, rest []byte) {
	o.first, b = b[0], b[1:]
	if o.first&kindBits == otherKind {
		o.kind, b = viewText(b)
	}
	o.name, b = cutLike(b, podName)
	switch {
	case o.first&uidDigits != 0:
		o.uid, b = b[:podBytes], b[podBytes:]
	case o.first&uidText != 0:
		o.uid, b = viewText(b)
	}
	switch {
	case o.first&jobIsName != 0:
		o.job = o.name
	case o.first&hasJob != 0:
		o.job, b = cutLike(b, podName)
	}
	if o.first&hasIndex != 0 {
		o.index, b = viewText(b)
	}
	return o, b
}

// isKind reports whether the owner is of a kind.
func (o *packedOwner) isKind(kind string) bool {
	if number := o.first & kindBits; number != otherKind {
		return kinds[number] == kind
	}
	return string(o.kind) == kind
}

// unpack sets the fields that the owner was packed from.
func (o *packedOwner) unpack(to *volume.Owner) {
	if number := o.first & kindBits; number != otherKind {
		to.Kind = kinds[number]
	} else {
		to.Kind = string(o.kind)
	}
	if o.first&uidDigits != 0 {
		to.UID = uuid(o.uid)
	} else {
		to.UID = string(o.uid)
	}
	to.Name, to.Job, to.JobIndex = o.name.String(), o.job.String(), string(o.index)
}

// like is a name in two parts. The head is the beginning of another name.
type like struct{ head, tail []byte }

// appendLike appends a name, and leaves out its beginning as far as other begins with it.
func appendLike(b []byte, name, other string) []byte {
	same := 0
	for same < min(len(name), len(other)) && name[same] == other[same] {
		same++
	}
	return appendText(binary.AppendUvarint(b, uint64(same)), name[same:])
}

func cutLike(b, other []byte) (l like, rest []byte) {
	same, size := binary.Uvarint(b)
	l.head = other[:same]
	l.tail, rest = viewText(b[size:])
	return l, rest
}

func (l like) String() string { return string(l.head) + string(l.tail) }

func (l like) is(name string) bool {
	return len(name) == len(l.head)+len(l.tail) && string(l.head) == name[:len(l.head)] && string(l.tail) == name[len(l.head):]
}

// appendSpace appends what an entry says itself about its namespace.
func appendSpace(b []byte, r *volume.Record) []byte {
	return appendPod(append(appendText(b, r.Namespace), byte(r.Owner.Verdict)), volume.PodUID(r.Owner.NamespaceUID))
}

// cutSpace cuts off a space that appendSpace has appended.
func cutSpace(b []byte) (s space, rest []byte) {
	s.namespace, b = cutText(b)
	s.verdict = volume.Verdict(b[0])
	uid, rest := cutPod(b[1:])
	s.namespaceUID = string(uid)
	return s, rest
}
