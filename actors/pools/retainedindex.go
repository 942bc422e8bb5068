package pools

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/messages"
)

// past is what the index keeps of a retained volume, or of one that was given to another claim.
type past struct {
	// claim and the UIDs tell whose it is; those of a volume that was given are its former owner's.
	namespace, namespaceUID string
	claim, claimUID         string
	since, until            time.Time
	// given: it was bound to another claim, whose name is to.
	given bool
	to    string
}

// pastOf reads what a volume was; nil for one whose first claim it is of.
func (x *index) pastOf(o *v1alpha1.PoolVolume) *past {
	before := wasBefore(o)
	switch {
	case o.Spec.ClaimRef == nil:
		return nil
	case before != nil && before.Claim != nil:
		return &past{
			namespace: x.word(o.Spec.ClaimRef.Namespace), namespaceUID: x.word(string(o.Spec.ClaimRef.NamespaceUID)),
			claim: strings.Clone(before.Claim.Name), claimUID: strings.Clone(string(before.Claim.UID)), given: true, to: o.Spec.ClaimRef.Name,
		}
	case isKept(o) && o.Status.RetainedSince != nil && o.Status.RetainedUntil != nil:
		c := o.Spec.ClaimRef
		return &past{
			namespace: x.word(c.Namespace), namespaceUID: x.word(string(c.NamespaceUID)), claim: c.Name, claimUID: string(c.UID),
			since: o.Status.RetainedSince.Time, until: o.Status.RetainedUntil.Time,
		}
	}
	return nil
}

// former is what a volume was before it was given to another claim.
type former struct {
	Claim       *v1alpha1.ClaimRef `json:"claim,omitempty"`
	RequestName string             `json:"requestName,omitempty"`
	Lifespan    time.Duration      `json:"lifespan"`
	Size        int64              `json:"size"`
}

// wasBefore reads the annotation of a volume that was given to another claim; nil for any other volume.
func wasBefore(o *v1alpha1.PoolVolume) *former {
	text := o.Annotations[v1alpha1.RestoredFromAnnotation]
	if text == "" {
		return nil
	}
	f := &former{}
	if json.Unmarshal([]byte(text), f) != nil {
		return &former{} // a person has changed it
	}
	return f
}

// claimUIDOf returns the UID of a volume's claim, in the memory of the volume's name where that ends with it.
func claimUIDOf(o *v1alpha1.PoolVolume) string {
	if o.Spec.ClaimRef == nil {
		return ""
	}
	uid := string(o.Spec.ClaimRef.UID)
	if uid != "" && strings.HasSuffix(o.Name, uid) {
		return o.Name[len(o.Name)-len(uid):]
	}
	return uid
}

// enterAfterlife notes whose a volume is, and was.
func (x *index) enterAfterlife(name string, v *indexedVolume) {
	if v.claim != "" {
		x.ofClaim[v.claim] = name
	}
	if v.request != "" {
		x.requested[v.request] = name
	}
	if v.past != nil {
		x.retained[name] = v
	}
	if v.flags.has(flagRetained) {
		c := &x.pool(v.pool).counts
		c.retainedVolumes, c.retained = c.retainedVolumes+1, c.retained+v.size
	}
}

// leaveAfterlife takes back what enterAfterlife has noted.
func (x *index) leaveAfterlife(name string, v *indexedVolume) {
	if x.ofClaim[v.claim] == name {
		delete(x.ofClaim, v.claim)
	}
	if x.requested[v.request] == name {
		delete(x.requested, v.request)
	}
	delete(x.retained, name)
	if v.flags.has(flagRetained) {
		c := &x.pool(v.pool).counts
		c.retainedVolumes, c.retained = c.retainedVolumes-1, c.retained-v.size
	}
}

// findRequested asks for the volume that has another name than the one by which CSI asked for it: it was given
// back to a claim. The answer is empty where there is none. Task -> supervisor.
type findRequested struct {
	request string
	messages.Reply[string]
}

// listRetained asks for the volumes of a namespace that are retained, or were given to another claim since.
// Task -> supervisor.
type listRetained struct {
	namespace string
	messages.Reply[[]retainedVolume]
}

// retainedVolume is one of them.
type retainedVolume struct {
	past
	name, pool, class string
	size              int64
	version           uint64
}

// retainedOf returns those of a namespace, the one first that was retained last.
func (x *index) retainedOf(namespace string) (all []retainedVolume) {
	for name, v := range x.retained {
		if v.past.namespace == namespace {
			all = append(all, retainedVolume{past: *v.past, name: name, pool: v.pool, class: v.class, size: v.size, version: v.version})
		}
	}
	slices.SortFunc(all, func(a, b retainedVolume) int {
		// Times are in seconds. Of one second that is the later one which was written later.
		return cmp.Or(b.since.Compare(a.since), cmp.Compare(b.version, a.version), cmp.Compare(a.name, b.name))
	})
	return all
}

// isRetained reports whether the index knows a volume as retained.
func (o *owner) isRetained(object client.Object) bool {
	v, ok := object.(*v1alpha1.PoolVolume)
	if !ok {
		return false
	}
	known := o.index.volumes[v.Name]
	return known != nil && known.flags.has(flagRetained)
}

// tellRetention tells the classes of a volume that is retained, or was until now.
func (o *owner) tellRetention(v *v1alpha1.PoolVolume, was bool) {
	switch {
	case isKept(v) && v.Status.RetainedSince != nil && v.Status.RetainedUntil != nil:
		o.Root.Send(o.Single(classesName), &retainedIs{
			name: v.Name, pool: v.Spec.PoolName, size: v.Status.Capacity.Value(), since: v.Status.RetainedSince.Time,
			lifespan: v.Status.RetainedUntil.Sub(v.Status.RetainedSince.Time),
		})
	case was:
		o.Root.Send(o.Single(classesName), &retainedNot{v.Name})
	}
}
