package retained

import (
	"bytes"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// mayBeIn reports whether volumes of a space may be in a list.
func (s *space) mayBeIn(list *volume.Selection) bool {
	switch {
	case s.inText:
		return true
	case list.Namespace != "" && list.Namespace != s.namespace, list.NoNamespace && s.namespace != "":
		return false
	case list.OwnerKind != "" && s.verdict != volume.Confirmed, list.Job != "" && s.verdict == volume.Denied:
		return false
	}
	return s.mayBelong(list.Tenancy)
}

// mayBelong reports whether volumes of a space may belong to the namespace as it is now; nil for any.
func (s *space) mayBelong(to *volume.Tenancy) bool {
	if to == nil || s.verdict == volume.Unasked {
		return true // when they were published decides
	}
	return to.Owns(s.owner(), time.Time{})
}

// owner is what the space says of the owner.
func (s *space) owner() volume.Owner {
	return volume.Owner{Verdict: s.verdict, NamespaceUID: s.namespaceUID}
}

// filter tells which entries are selected, by the short forms of what they must have: no short form
// is the beginning of another.
type filter struct {
	volume.Selection
	table        *table
	pod, podName []byte
	// owned: the list depends on more than the namespace and the pod.
	owned bool
}

func (t *table) filter(s volume.Selection) filter {
	f := filter{Selection: s, table: t, owned: s.Tenancy != nil || s.Job != "" || s.OwnerKind != ""}
	if s.Pod != "" {
		f.pod = appendPod(nil, s.Pod)
	}
	if s.PodName != "" {
		f.podName = appendText(nil, s.PodName)
	}
	return f
}

// matches is only for entries of the lists that a selection begins with.
func (f *filter) matches(n number) bool {
	s := f.table.space(n)
	if f.pod == nil && f.podName == nil && f.PodPrefix == "" && !f.owned && !s.inText {
		return true
	}
	rest := skipID(f.table.read(n))
	if !bytes.HasPrefix(rest, f.pod) {
		return false
	}
	if rest = skipPod(rest); !bytes.HasPrefix(rest, f.podName) {
		return false
	}
	podName, rest := viewText(rest)
	switch {
	case !hasPrefix(podName, f.PodPrefix):
		return false
	case !f.owned && !s.inText:
		return true
	}
	published, rest := cutSeconds(rest, f.table.first(n))
	if s.inText {
		own, of := cutSpace(rest)
		own.inText = false
		if s, rest = &own, of; !s.mayBeIn(&f.Selection) {
			return false
		}
	}
	if f.Tenancy != nil && !f.Tenancy.Owns(s.owner(), published) {
		return false
	}
	switch {
	case f.Job == "" && f.OwnerKind == "":
		return true
	case s.verdict == volume.Unasked:
		// The name of the pod says which Job it may be of. Most begin with another one.
		return f.OwnerKind == "" && hasPrefix(podName, f.Job) && volume.MayBeOf(string(podName), f.Job)
	case s.verdict != volume.Confirmed:
		return false
	}
	owner, _ := cutOwner(rest, podName)
	return (f.Job == "" || owner.job.is(f.Job)) && (f.OwnerKind == "" || owner.isKind(f.OwnerKind))
}

func hasPrefix(text []byte, prefix string) bool {
	return len(text) >= len(prefix) && string(text[:len(prefix)]) == prefix
}
