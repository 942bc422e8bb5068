package resource

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/katbox/katbox/internal/model/api"
)

// The fields that a list is selected by.
const (
	fieldName    = "metadata.name"
	fieldPod     = "spec.podName"
	fieldPodUID  = "spec.podUID"
	fieldClaim   = "spec.claimName"
	fieldNode    = "spec.nodeName"
	fieldOwner   = "spec.owner"
	fieldPhase   = "status.phase"
	phaseOfNodes = "Retained"
)

// Selector selects the volumes of a list. The zero Selector selects all.
type Selector struct {
	labels labels.Requirements
	fields fields.Requirements
}

// ParseSelector reads the parameters labelSelector and fieldSelector. The error is a
// [k8s.io/apimachinery/pkg/api/errors.StatusError].
func ParseSelector(labelSelector, fieldSelector string) (Selector, error) {
	var s Selector
	byLabel, err := labels.Parse(labelSelector)
	if err != nil {
		return s, BadRequest(api.BadParameter, "labelSelector", "labelSelector=%q cannot be read: %v", labelSelector, err)
	}
	s.labels, _ = byLabel.Requirements()
	byField, err := fields.ParseSelector(fieldSelector)
	if err != nil {
		return s, BadRequest(api.BadParameter, "fieldSelector", "fieldSelector=%q cannot be read: %v", fieldSelector, err)
	}
	s.fields = byField.Requirements()
	known := []string{fieldName, fieldPod, fieldPodUID, fieldClaim, fieldNode, fieldOwner, fieldPhase}
	for _, r := range s.fields {
		if !slices.Contains(known, r.Field) {
			return s, BadRequest(api.BadParameter, "fieldSelector", "fieldSelector: volumes are not selected by %q, but by %v", r.Field, known)
		}
	}
	return s, nil
}

// Narrow returns q with what a node can select by itself. What it cannot is left to Matches.
func (s Selector) Narrow(q api.Query) api.Query {
	if pod, ok := s.field(fieldPod); ok {
		q.Pod = pod
	}
	if claim, ok := s.field(fieldClaim); ok && claim != "" {
		q.Pod = claim // a node selects claims as pods
	}
	if uid, ok := s.field(fieldPodUID); ok {
		q.PodUID = uid
	}
	if name, ok := s.field(fieldName); ok {
		if prefix, _, _, _, err := ParseName(name); err == nil {
			q.PodPrefix = prefix
		}
	}
	if job, ok := s.label(LabelJob); ok {
		q.Job = job
	}
	if kind, ok := s.label(LabelOwnerKind); ok {
		q.OwnerKind = kind
	}
	return q
}

// All reports whether all volumes are selected.
func (s Selector) All() bool { return len(s.labels) == 0 && len(s.fields) == 0 }

// Nodes reports whether volumes of a node may be selected.
func (s Selector) Nodes(node string) bool {
	for _, r := range s.fields {
		switch r.Field {
		case fieldNode:
			if (r.Value == node) == (r.Operator == selection.NotEquals) {
				return false
			}
		case fieldName:
			if _, _, hash, _, err := ParseName(r.Value); r.Operator != selection.NotEquals && (err != nil || hash != NodeHash(node)) {
				return false
			}
		}
	}
	return true
}

// Gone reports whether volumes are selected that were deleted, and no others.
func (s Selector) Gone() bool {
	phase, _ := s.field(fieldPhase)
	return phase == api.PhaseGone
}

// Empty reports whether no volume can be selected, whatever there is.
func (s Selector) Empty() bool {
	if phase, ok := s.field(fieldPhase); ok && phase != phaseOfNodes && phase != api.PhaseArchived && phase != api.PhaseGone {
		return true
	}
	if name, ok := s.field(fieldName); ok {
		if _, _, _, _, err := ParseName(name); err != nil {
			return true
		}
	}
	return slices.ContainsFunc(s.labels, func(r labels.Requirement) bool { return !knownLabel(r.Key()) && !r.Matches(labels.Set{}) })
}

// Matches reports whether a volume is selected.
func (s Selector) Matches(v *RetainedVolume) bool {
	for _, r := range s.fields {
		if (value(v, r.Field) == r.Value) == (r.Operator == selection.NotEquals) {
			return false
		}
	}
	for _, r := range s.labels {
		if !r.Matches(labels.Set(v.Labels)) && !guessMatches(r, v) {
			return false
		}
	}
	return true
}

// String returns the selector as text that is the same for all ways to write it.
func (s Selector) String() string {
	byLabel := labels.NewSelector().Add(s.labels...)
	byField := make([]string, len(s.fields))
	for i, r := range s.fields {
		byField[i] = fmt.Sprintf("%s %v %q", r.Field, r.Operator != selection.NotEquals, r.Value)
	}
	slices.Sort(byField)
	return fmt.Sprintf("%q %q", byLabel.String(), byField)
}

// Warning says that the selector names a label which no volume has; empty if it does not.
func (s Selector) Warning() string {
	for _, r := range s.labels {
		if !knownLabel(r.Key()) {
			return fmt.Sprintf("retained volumes do not have the label %q: their labels are %s, %s and %s, and those of the pod are not kept",
				r.Key(), LabelJob, LabelOwnerKind, LabelForeign)
		}
	}
	return ""
}

func knownLabel(key string) bool {
	return key == LabelJob || key == LabelOwnerKind || key == LabelForeign
}

// field returns the value that a field has to have.
func (s Selector) field(name string) (string, bool) {
	for _, r := range s.fields {
		if r.Field == name && r.Operator != selection.NotEquals {
			return r.Value, true
		}
	}
	return "", false
}

// label returns the value that a label has to have.
func (s Selector) label(key string) (string, bool) {
	for _, r := range s.labels {
		if value, ok := only(r); ok && r.Key() == key {
			return value, true
		}
	}
	return "", false
}

// only returns the only value that a requirement allows.
func only(r labels.Requirement) (string, bool) {
	switch r.Operator() {
	case selection.Equals, selection.DoubleEquals, selection.In:
		if values := r.ValuesUnsorted(); len(values) == 1 && values[0] != "" {
			return values[0], true
		}
	}
	return "", false
}

// value returns a field of a volume.
func value(v *RetainedVolume, field string) string {
	switch field {
	case fieldName:
		return v.Name
	case fieldPod:
		return v.Spec.PodName
	case fieldPodUID:
		return v.Spec.PodUID
	case fieldClaim:
		return v.Spec.ClaimName
	case fieldNode:
		return v.Spec.NodeName
	case fieldOwner:
		if o := v.Spec.Owner; o != nil && !o.Guessed {
			return o.String()
		}
	case fieldPhase:
		return v.Status.Phase
	}
	return ""
}

// OnlyName returns the name that a field selector asks for; empty if it may select several, or cannot
// be read. The API server takes it for the name of the request when it asks who may list.
func OnlyName(fieldSelector string) string {
	s, err := fields.ParseSelector(fieldSelector)
	if err != nil {
		return ""
	}
	name, _ := s.RequiresExactMatch(fieldName)
	return name
}
