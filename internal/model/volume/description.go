package volume

import (
	"cmp"
	"strings"
	"time"
)

// Description is what is known of a volume.
type Description struct {
	Record Record
	// Claim is the name of the deleted PersistentVolumeClaim whose volume it was. Its record has no pod, and of its
	// owner the namespace's UID. It is empty for an inline volume, and where no claim is known.
	Claim string
	// Size is what a retained volume takes; zero while that is not known.
	Size Size
	// Deadline is when a retained volume goes if the disk pressure stays as it is. Early says that
	// the pressure makes this earlier than the end of its lifespan. A hold's deadline stays.
	Deadline time.Time
	Early    bool
	// LimitNotEnforced: its terms limit what it may take, and nothing enforces that.
	LimitNotEnforced bool
}

// Key orders the retained volumes: by the time of their unpublish on the wall clock, as people see
// it, and then by their ID. The zero Key is before all others.
type Key struct {
	Unpublished time.Time
	ID          ID
}

// Compare returns -1 if k is before l, 0 if both are equal, and 1 else.
func (k Key) Compare(l Key) int {
	// Round drops the monotonic reading.
	return cmp.Or(k.Unpublished.Round(0).Compare(l.Unpublished.Round(0)), strings.Compare(string(k.ID), string(l.ID)))
}

// IsZero reports whether k is the zero Key.
func (k Key) IsZero() bool { return k == Key{} }

// Key is where the volume stands among all that are retained.
func (r Record) Key() Key { return Key{r.Unpublished.Round(0), r.ID} }

// Selection says which retained volumes a list contains. A zero field selects all.
type Selection struct {
	Namespace string
	// Tenancy leaves out volumes that do not belong to the namespace as it is now.
	Tenancy *Tenancy
	// NoNamespace selects volumes whose namespace is not known.
	NoNamespace bool
	PodName     string
	// PodPrefix selects pods by the beginning of their name.
	PodPrefix string
	Pod       PodUID
	// Job and OwnerKind select by the fields of Owner; Job by the name of the pod if the owner is not
	// known.
	Job, OwnerKind string
	// Since leaves out volumes that were retained before.
	Since time.Time
	// Before continues a list: only volumes whose key is smaller.
	Before Key
	// Limit is how many volumes the page may hold. It is at least 1.
	Limit int
}

// Selects reports whether the list contains a retained volume.
func (s Selection) Selects(r Record) bool {
	switch {
	case s.Namespace != "" && s.Namespace != r.Namespace, s.NoNamespace && r.Namespace != "",
		s.PodName != "" && s.PodName != r.PodName, !strings.HasPrefix(r.PodName, s.PodPrefix), s.Pod != "" && s.Pod != r.Pod,
		s.Job != "" && !r.OfJob(s.Job), s.OwnerKind != "" && s.OwnerKind != r.Owner.Kind:
		return false
	case s.Tenancy != nil && !s.Tenancy.Owns(r.Owner, r.Published):
		return false
	case !s.Before.IsZero() && r.Key().Compare(s.Before) >= 0:
		return false
	}
	return !r.Key().Unpublished.Before(s.Since.Round(0))
}

// SelectsDescribed is Selects for what is described: a claim stands for the pod that a claim's volume does not have.
func (s Selection) SelectsDescribed(d Description) bool {
	r := d.Record
	r.PodName = cmp.Or(r.PodName, d.Claim)
	return s.Selects(r)
}

// Page is a part of a list of retained volumes, the newest first.
type Page struct {
	Volumes []Description
	// Next continues the list when it is the Before of the next Selection. It is the zero Key at the
	// end of the list. A page may hold fewer volumes than its limit, or none, and not be the last.
	Next Key
}

// OtherNamespaces is the Namespace of a Holding for volumes of any namespaces: those that a node
// does not count one by one, because it has volumes of too many.
const OtherNamespaces = "*"

// Holding is how many retained volumes of one namespace a node holds. Namespaces of the same name
// count apart if their UIDs differ, as do volumes whose owner is not confirmed.
type Holding struct {
	// Namespace is empty for volumes whose namespace is not known, and may be [OtherNamespaces].
	Namespace    string
	NamespaceUID string
	Verdict      Verdict
	Volumes      int
	// Newest and Oldest are when they were retained.
	Newest, Oldest time.Time
}
