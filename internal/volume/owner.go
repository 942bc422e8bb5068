package volume

import "time"

// Verdict is what the API server's word about a volume's pod came to.
type Verdict uint8

const (
	// Unasked: nobody has asked about the pod, or there was no answer yet.
	Unasked Verdict = iota
	// Confirmed: the pod was there, with this UID, in this namespace, on this node.
	Confirmed
	// Denied: the API server knows no such pod, so no namespace's readers see the volume.
	Denied
)

// String returns the verdict in one word.
func (v Verdict) String() string {
	switch v {
	case Confirmed:
		return "Confirmed"
	case Denied:
		return "Denied"
	}
	return "Unasked"
}

// Owner is whose a volume is, as the gateway read it from the API server while the pod existed. The
// zero Owner says that this is not known. Only a Confirmed owner has further fields.
type Owner struct {
	Verdict Verdict
	// NamespaceUID is the UID of the pod's namespace.
	NamespaceUID string
	// Kind, Name and UID are those of the pod's controller, such as a Job; empty if it has none.
	Kind, Name, UID string
	// Job and JobIndex are the pod's labels batch.kubernetes.io/job-name and its annotation
	// batch.kubernetes.io/job-completion-index; empty if there are none.
	Job, JobIndex string
}

// Tenancy is a namespace as it is now. It says which volumes belong to it, and which belong to an
// earlier namespace of the same name.
type Tenancy struct {
	// UID is the namespace's UID.
	UID string
	// Since is when the namespace was created, and some time for clocks that differ: a volume whose
	// owner nobody has asked for belongs to the namespace if it was published later.
	Since time.Time
}

// Owns reports whether a volume that bears the namespace's name belongs to the namespace.
func (t Tenancy) Owns(o Owner, published time.Time) bool {
	switch o.Verdict {
	case Confirmed:
		return o.NamespaceUID == t.UID && t.UID != ""
	case Unasked:
		return !published.IsZero() && !t.Since.IsZero() && !published.Before(t.Since)
	}
	return false
}
