package rules

import (
	"encoding/json"
	"time"

	"github.com/katbox/katbox/internal/model/v1alpha1"
)

// A volume whose claim was deleted is kept for a lifespan, as it is on its array. Its resource says so with the
// state Retained and two times, and its comment on the array says the same, for an import. The comment is
// written before the state: a volume that is Retained has both.
//
// A volume that is being given to another claim has the annotation [v1alpha1.RestoredFromAnnotation] while it is
// still Retained.

// IsKept reports whether a volume is retained, and no claim has got it back.
func IsKept(v *v1alpha1.PoolVolume) bool {
	return v.DeletionTimestamp == nil && v.Status.State == v1alpha1.VolumeRetained && v.Annotations[v1alpha1.RestoredFromAnnotation] == ""
}

// IsGiven reports whether a retained volume is bound to another claim, and is yet to be handed over.
func IsGiven(v *v1alpha1.PoolVolume) bool {
	return v.DeletionTimestamp == nil && v.Status.State == v1alpha1.VolumeRetained && v.Annotations[v1alpha1.RestoredFromAnnotation] != ""
}

// IsEnding reports whether a retained volume is to be deleted, and its resource does not say so yet.
func IsEnding(v *v1alpha1.PoolVolume) bool {
	return v.DeletionTimestamp == nil && v.Status.State == v1alpha1.VolumeDeleting && v.Status.RetainedSince != nil
}

// UnfinishedRetained reports whether something is left to do for a retained volume.
func UnfinishedRetained(v *v1alpha1.PoolVolume) bool {
	if IsGiven(v) {
		return true
	}
	if v.Status.RetainedSince == nil || v.Status.RetainedUntil == nil {
		return false
	}
	c := v.Spec.ClaimRef
	until := v.Status.RetainedUntil
	return v.Spec.Lifespan == nil || !until.Time.Equal(UntilOf(*v.Status.RetainedSince, v.Spec.Lifespan.Duration).Time) ||
		c != nil && c.Namespace != v.Labels[v1alpha1.LabelNamespace]
}

// Former is what a volume was before it was given to another claim.
type Former struct {
	Claim       *v1alpha1.ClaimRef `json:"claim,omitempty"`
	RequestName string             `json:"requestName,omitempty"`
	Lifespan    time.Duration      `json:"lifespan"`
	Size        int64              `json:"size"`
}

// FormerOf reads the annotation of a volume that was given to another claim; nil for any other volume.
func FormerOf(o *v1alpha1.PoolVolume) *Former {
	text := o.Annotations[v1alpha1.RestoredFromAnnotation]
	if text == "" {
		return nil
	}
	f := &Former{}
	if json.Unmarshal([]byte(text), f) != nil {
		return &Former{} // a person has changed it
	}
	return f
}
