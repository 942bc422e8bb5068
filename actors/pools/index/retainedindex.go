package index

import (
	"cmp"
	"slices"
	"strings"

	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// pastOf reads what a volume was; nil for one whose first claim it is of.
func (x *Index) pastOf(o *v1alpha1.PoolVolume) *poolmessages.Past {
	before := rules.FormerOf(o)
	switch {
	case o.Spec.ClaimRef == nil:
		return nil
	case before != nil && before.Claim != nil:
		return &poolmessages.Past{
			Namespace: x.word(o.Spec.ClaimRef.Namespace), NamespaceUID: x.word(string(o.Spec.ClaimRef.NamespaceUID)),
			Claim: strings.Clone(before.Claim.Name), ClaimUID: strings.Clone(string(before.Claim.UID)), Given: true, To: o.Spec.ClaimRef.Name,
		}
	case rules.IsKept(o) && o.Status.RetainedSince != nil && o.Status.RetainedUntil != nil:
		c := o.Spec.ClaimRef
		return &poolmessages.Past{
			Namespace: x.word(c.Namespace), NamespaceUID: x.word(string(c.NamespaceUID)), Claim: c.Name, ClaimUID: string(c.UID),
			Since: o.Status.RetainedSince.Time, Until: o.Status.RetainedUntil.Time,
		}
	}
	return nil
}

// enterAfterlife notes the owner of a volume, and the former one.
func (x *Index) enterAfterlife(name string, v *Volume) {
	if v.Claim != "" {
		x.ofClaim[v.Claim] = name
	}
	if v.request != "" {
		x.requested[v.request] = name
	}
	if v.past != nil {
		x.retained[name] = v
	}
	if v.Flags.Has(poolmessages.FlagRetained) {
		c := &x.pool(v.pool).counts
		c.RetainedVolumes, c.Retained = c.RetainedVolumes+1, c.Retained+v.size
	}
}

// leaveAfterlife takes back what enterAfterlife has noted.
func (x *Index) leaveAfterlife(name string, v *Volume) {
	if x.ofClaim[v.Claim] == name {
		delete(x.ofClaim, v.Claim)
	}
	if x.requested[v.request] == name {
		delete(x.requested, v.request)
	}
	delete(x.retained, name)
	if v.Flags.Has(poolmessages.FlagRetained) {
		c := &x.pool(v.pool).counts
		c.RetainedVolumes, c.Retained = c.RetainedVolumes-1, c.Retained-v.size
	}
}

// RetainedOf returns those of a namespace, the one first that was retained last.
func (x *Index) RetainedOf(namespace string) (all []poolmessages.RetainedVolume) {
	for name, v := range x.retained {
		if v.past.Namespace == namespace {
			all = append(all, poolmessages.RetainedVolume{Past: *v.past, Name: name, Pool: v.pool, Class: v.class, Size: v.size, Version: v.version})
		}
	}
	slices.SortFunc(all, func(a, b poolmessages.RetainedVolume) int {
		// Times are in seconds. Of one second that is the later one which was written later.
		return cmp.Or(b.Since.Compare(a.Since), cmp.Compare(b.Version, a.Version), cmp.Compare(a.Name, b.Name))
	})
	return all
}
