package arrays

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
)

// kindClaim is the kind of the owner of a volume that a claim had.
const kindClaim = "PersistentVolumeClaim"

// mostSize is the longest size that is read, in bytes: what takes 250 KiB takes half a minute.
const mostSize = 32

// keptOf describes a PoolVolume that is retained on an array; nil for any other. One that is being given to a claim is not
// retained any more. Where it does not say of which namespace it is, by its UID, only those who may see all see it.
func keptOf(o *unstructured.Unstructured) *entry {
	since, until := timeIn(o, "status", "retainedSince"), timeIn(o, "status", "retainedUntil")
	switch {
	case textIn(o, "status", "state") != string(v1alpha1.VolumeRetained), textIn(o, "spec", "protocol") == string(v1alpha1.Local),
		o.GetDeletionTimestamp() != nil, o.GetAnnotations()[v1alpha1.RestoredFromAnnotation] != "", since.IsZero() || until.IsZero():
		return nil
	}
	name, claim := o.GetName(), nameIn(o, "spec", "claimRef", "name")
	r := volume.Record{
		ID: volume.ID(name), Namespace: nameIn(o, "spec", "claimRef", "namespace"), PodName: claim, Phase: volume.Retained,
		Published: o.GetCreationTimestamp().UTC(), Unpublished: since, Owner: volume.Owner{
			Verdict: volume.Confirmed, NamespaceUID: textIn(o, "spec", "claimRef", "namespaceUID"),
			Kind: kindClaim, Name: claim, UID: textIn(o, "spec", "claimRef", "uid"),
		},
	}
	if claim == "" || r.Owner.Check() != nil {
		r.Owner = volume.Owner{Verdict: volume.Denied}
	}
	v := api.Volume{
		ID: name, Namespace: r.Namespace, Claim: claim, Phase: r.Phase.String(),
		PublishedAt: &r.Published, RetainedAt: &since, ExpiresAt: &until, Owner: &api.Owner{
			Verdict: r.Owner.Verdict.String(), NamespaceUID: r.Owner.NamespaceUID, Kind: r.Owner.Kind, Name: r.Owner.Name, UID: r.Owner.UID,
		},
		Array: &api.Array{
			Pool: nameIn(o, "spec", "poolName"), Class: nameIn(o, "spec", "className"),
			Block: textIn(o, "spec", "volumeMode") == string(v1alpha1.Block),
		},
	}
	size := cmp.Or(textIn(o, "status", "capacity"), textIn(o, "spec", "size"))
	if q, err := resource.ParseQuantity(size[:min(len(size), mostSize)]); err == nil && len(size) <= mostSize {
		bytes := q.Value()
		v.Bytes, v.Array.Size = &bytes, size
	}
	return &entry{record: r, volume: v}
}

// textIn returns a text; empty where it is none.
func textIn(o *unstructured.Unstructured, fields ...string) string {
	text, _, _ := unstructured.NestedString(o.Object, fields...)
	return text
}

// nameIn returns the name of an object; empty where a text is none: a list would be as long as it, and names are shown.
func nameIn(o *unstructured.Unstructured, fields ...string) string {
	return volume.ObjectName(textIn(o, fields...))
}

// timeIn returns a time; zero where it is none.
func timeIn(o *unstructured.Unstructured, fields ...string) time.Time {
	at, err := time.Parse(time.RFC3339, textIn(o, fields...))
	if err != nil {
		return time.Time{}
	}
	return at.UTC()
}
