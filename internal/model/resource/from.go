package resource

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
)

// From returns a volume of a node as a resource. One whose namespace is not known is shown in the
// namespace home. foreign says that it does not belong to its namespace as that is now.
func From(v api.Volume, home string, foreign bool) RetainedVolume {
	r := RetainedVolume{
		TypeMeta: metav1.TypeMeta{APIVersion: GroupVersion.String(), Kind: Kind},
		ObjectMeta: metav1.ObjectMeta{
			Name: Name(v), Namespace: cmp.Or(volume.ObjectName(v.Namespace), home), UID: uid(v),
		},
		Spec: Spec{
			PodName: v.Pod, PodUID: v.PodUID, ClaimName: v.Claim, VolumeName: v.Volume, NodeName: v.Node, VolumeID: v.ID,
			Owner: owner(v),
		},
		Status: Status{
			Phase: v.Phase, Outcome: v.Outcome, PublishedAt: timeOf(v.PublishedAt), RetainedAt: timeOf(v.RetainedAt),
			ExpiresAt: timeOf(v.ExpiresAt), MayGoEarlier: v.MayGoEarlier, ArchivedUntil: timeOf(v.ArchivedUntil), Bytes: v.Bytes, Inodes: v.Inodes,
		},
	}
	if a := v.Array; a != nil {
		r.Spec.NodeName, r.Spec.PoolName, r.Spec.ClassName = "", a.Pool, a.Class
	}
	if t := v.Terms; t != nil {
		r.Status.Terms = (*Terms)(t)
	}
	if h := v.Hold; h != nil {
		r.Status.Hold = &Hold{Kind: h.Kind, Until: metav1.NewTime(h.Until), By: h.By, Why: h.Why}
		if h.Kind == volume.Pinned.String() {
			r.Spec.KeepUntil, r.Spec.KeepReason = timeOf(&h.Until), h.Why
		}
	}
	if v.RetainedAt != nil {
		r.CreationTimestamp = metav1.NewTime(*v.RetainedAt)
	}
	if v.Owner != nil {
		r.Spec.NamespaceUID = v.Owner.NamespaceUID
	}
	set := map[string]string{}
	label := func(key, value string) {
		if value != "" && len(validation.IsValidLabelValue(value)) == 0 {
			set[key] = value
		}
	}
	switch o := r.Spec.Owner; {
	case confirmed(v):
		label(LabelJob, v.Owner.Job)
		label(LabelOwnerKind, v.Owner.Kind)
	case o != nil && o.Guessed:
		label(LabelJob, o.Name)
	}
	if foreign {
		label(LabelForeign, "true")
	}
	if len(set) > 0 {
		r.Labels = set
	}
	return r
}

// FromGone returns a volume that a node has deleted as a resource, as From does.
func FromGone(v api.GoneVolume, home string, foreign bool) RetainedVolume {
	r := From(v.Volume, home, foreign)
	r.Status.Phase = api.PhaseGone
	r.Status.Gone = &Gone{
		At: metav1.NewTime(v.GoneAt), Reason: v.Reason, Promised: v.Promised, Kept: v.Kept, Early: v.Early, By: v.By, Why: v.Why,
	}
	return r
}

// confirmed reports whether the API server has said whose the volume is.
func confirmed(v api.Volume) bool {
	return v.Owner != nil && v.Owner.Verdict == volume.Confirmed.String()
}

// owner returns the controller of a volume's pod: nil if it has none, or if it is not known.
func owner(v api.Volume) *Owner {
	switch {
	case confirmed(v) && (v.Owner.Kind != "" || v.Owner.Name != ""):
		return &Owner{Kind: v.Owner.Kind, Name: v.Owner.Name, UID: v.Owner.UID, JobIndex: v.Owner.JobIndex}
	case v.Owner == nil:
		if job := volume.GuessJob(v.Pod); job != "" {
			return &Owner{Kind: "Job", Name: job, Guessed: true}
		}
	}
	return nil
}

// guessMatches reports whether a requirement asks for a Job that the pod of a volume may be of, by
// its name. More Jobs than the one in the label may be.
func guessMatches(r labels.Requirement, v *RetainedVolume) bool {
	switch r.Operator() {
	case selection.Equals, selection.DoubleEquals, selection.In:
	default:
		return false
	}
	return r.Key() == LabelJob && v.Spec.Owner != nil && v.Spec.Owner.Guessed &&
		slices.ContainsFunc(r.ValuesUnsorted(), func(job string) bool { return volume.MayBeOf(v.Spec.PodName, job) })
}

// uid returns a UID that is always the same for a volume, and another for each volume of the cluster.
func uid(v api.Volume) types.UID {
	sum := sha256.Sum256([]byte(Group + "\x00" + v.Node + "\x00" + v.ID))
	sum[6] = sum[6]&0x0f | 0x80 // version 8: made by rules of our own
	sum[8] = sum[8]&0x3f | 0x80
	return types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16]))
}

func timeOf(t *time.Time) *metav1.Time {
	if t == nil {
		return nil
	}
	return &metav1.Time{Time: *t}
}
