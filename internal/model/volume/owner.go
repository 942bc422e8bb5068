package volume

import (
	"fmt"
	"time"
	"unicode"
	"unicode/utf8"
)

// Verdict is what the API server's word about a volume's pod came to.
type Verdict uint8

const (
	// Unasked: the API server was not asked about the pod, or has not answered yet.
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

// Owner is the owner of a volume, as the gateway read it from the API server while the pod existed. The
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
	// Seal proves to a gateway that one has said this; empty if the gateway gave none, and once the volume is archived, or is not to be.
	Seal string
}

// MaxSeal is the longest Seal in bytes.
const MaxSeal = 64

// maxOwnerText is the longest text in an Owner, in bytes. It is that of an object's name.
const maxOwnerText = maxObjectName

// Check returns nil for an Owner that a record may have: its texts are short and printable, and are
// there if it is Confirmed, and only then. The error is an [InvalidError].
func (o Owner) Check() error {
	texts := []struct{ field, text string }{
		{"namespaceUID", o.NamespaceUID}, {"kind", o.Kind}, {"name", o.Name}, {"uid", o.UID}, {"job", o.Job}, {"jobIndex", o.JobIndex},
	}
	switch o.Verdict {
	case Confirmed:
		if o.NamespaceUID == "" {
			return Invalid("owner.namespaceUID", "is missing, but the owner is Confirmed")
		}
		if len(o.Seal) > MaxSeal || !isPrintable(o.Seal) {
			return Invalid("owner.seal", fmt.Sprintf("is longer than %d bytes, or cannot be printed", MaxSeal))
		}
	case Unasked, Denied:
		if o != (Owner{Verdict: o.Verdict}) {
			return Invalid("owner", fmt.Sprintf("is %s, but says more", o.Verdict))
		}
	default:
		return Invalid("owner.verdict", fmt.Sprintf("is %d, which means nothing", uint8(o.Verdict)))
	}
	for _, t := range texts {
		if len(t.text) > maxOwnerText {
			return Invalid("owner."+t.field, fmt.Sprintf("is longer than %d bytes", maxOwnerText))
		}
		if !isPrintable(t.text) {
			return Invalid("owner."+t.field, "has characters that cannot be printed")
		}
	}
	return nil
}

// OwnerText returns a text if an Owner may have it, and else none: what is left of a longer one may be the
// name of something else.
func OwnerText(text string) string {
	if len(text) > maxOwnerText || !isPrintable(text) {
		return ""
	}
	return text
}

// isPrintable reports whether text is UTF-8 without control characters and the like. Most texts are
// plain ASCII, and a start looks at millions.
func isPrintable(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return isPrintableUnicode(text[i:])
		}
	}
	return true
}

func isPrintableUnicode(text string) bool {
	for _, r := range text {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return utf8.ValidString(text)
}

// Learn returns what is known after a gateway has said more of the same pod. A pod that was there
// once was there, so Confirmed is the last word; a gateway may put its seal to the same word later.
func (o Owner) Learn(said Owner) Owner {
	if o.Verdict == Confirmed && o.Seal == "" {
		if same := said.Unsealed(); same == o {
			return said
		}
	}
	if o.Verdict == Confirmed || said.Verdict == Unasked {
		return o
	}
	return said
}

// Unsealed returns the owner without its seal.
func (o Owner) Unsealed() Owner {
	o.Seal = ""
	return o
}

// Tenancy is a namespace as it is now. It says which volumes belong to it, and which belong to an
// earlier namespace of the same name.
type Tenancy struct {
	// UID is the namespace's UID.
	UID string
	// Since is when the namespace was created, and some time for clocks that differ: a volume whose
	// unknown owner belongs to the namespace if it was published later.
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
