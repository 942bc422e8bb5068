package pools

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/katbox/katbox/actors/pools/index"
	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/messages"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// When a volume is to be deleted, its claim is gone, and with it what the claim said of its lifespan. So the
// resource of the volume follows the claim while there is one: the supervisor compares the two, whenever it sees
// either, and lets the volume's actor write what has changed.

// claims are what the claims of the cluster say that have the annotation of a lifespan. Only the supervisor's
// turn uses it.
type claims struct {
	// said is by namespace/name; a claim that has taken its annotation back stays in it, until it is gone.
	said map[string]claimSaid
	// behind are the volumes whose resource does not say yet what their claim does.
	behind map[string]bool
}

type claimSaid struct {
	uid      string
	lifespan time.Duration
	invalid  string
}

func newClaims() claims { return claims{said: map[string]claimSaid{}, behind: map[string]bool{}} }

// claimSeen takes over what a claim says.
func (o *owner) claimSeen(c *metav1.PartialObjectMetadata) {
	key := c.Namespace + "/" + c.Name
	lifespan, invalid := rules.LifespanOf(c)
	before, known := o.claims.said[key]
	if lifespan == rules.NoLifespan && invalid == nil && !known && o.index.VolumeOfClaim(string(c.UID)) == "" {
		return
	}
	now := claimSaid{uid: string(c.UID), lifespan: lifespan}
	if invalid != nil {
		now.invalid = invalid.Error() // which has the beginning of the annotation alone
	}
	name := o.index.VolumeOfClaim(now.uid)
	if now.invalid != "" && now != before && name != "" && o.listed {
		o.Resources.Events.Event(c, corev1.EventTypeWarning, "InvalidLifespan", volume.OneLine(invalid))
	}
	if known || now.lifespan != rules.NoLifespan || now.invalid != "" {
		o.claims.said[key] = now
	}
	if name != "" {
		o.compareClaim(name, now.lifespan)
	}
}

// claimGone forgets a claim. Its volume keeps what it said last.
func (o *owner) claimGone(key string) { delete(o.claims.said, key) }

// volumeSeen compares a volume with what is known of its claim.
func (o *owner) volumeSeen(v *v1alpha1.PoolVolume) {
	delete(o.claims.behind, v.Name)
	o.compareBound(v.Name)
	c := v.Spec.ClaimRef
	if c == nil {
		return
	}
	if said, ok := o.claims.said[c.Namespace+"/"+c.Name]; ok && said.uid == string(c.UID) {
		o.compareClaim(v.Name, said.lifespan)
	}
}

// compareClaim lets a volume follow its claim.
func (o *owner) compareClaim(name string, lifespan time.Duration) {
	if v := o.index.Volume(name); v != nil && v.Lifespan != lifespan {
		o.letFollow(name, v)
	}
}

// letFollow lets the actor of a volume write down what has changed of its claim.
func (o *owner) letFollow(name string, v *index.Volume) {
	if !v.Flags.Has(poolmessages.FlagReady) || v.Flags.Has(poolmessages.FlagDeleting) {
		return
	}
	id := messages.KeyOf(rules.KindVolume, name)
	if !o.listed || o.supervisor.IsAwake(id) {
		o.claims.behind[name] = true // it goes on when all is listed, or the actor has ended
		return
	}
	o.catchUp(name)
}

// catchUp lets the actor of a volume that is behind go on.
func (o *owner) catchUp(name string) {
	delete(o.claims.behind, name)
	o.bound.try(name)
	o.goOn(messages.KeyOf(rules.KindVolume, name))
}

// bindings are the PersistentVolumes that are bound to another claim than the resources of their volumes say, or whose
// volumes have no resource yet. Only the supervisor's turn uses them.
type bindings struct {
	// of is by the name of the PersistentVolume, by has those names by their volumes.
	of map[string]binding
	by map[string]string
}

// binding is a volume, and the UID of the claim that has it. tried: the volume's actor was told.
type binding struct {
	volume, claim string
	tried         bool
}

func newBindings() bindings { return bindings{of: map[string]binding{}, by: map[string]string{}} }

func (b *bindings) set(name string, of binding) {
	b.drop(name)
	b.of[name], b.by[of.volume] = of, name
}

func (b *bindings) drop(name string) {
	was := b.of[name]
	delete(b.of, name)
	if b.by[was.volume] == name {
		delete(b.by, was.volume)
	}
}

// try notes that the actor of a volume is told.
func (b *bindings) try(volume string) {
	if name, ok := b.by[volume]; ok {
		of := b.of[name]
		of.tried = true
		b.of[name] = of
	}
}

// boundSeen takes over to which claim a PersistentVolume is bound.
func (o *owner) boundSeen(pv *corev1.PersistentVolume) {
	source, ref := pv.Spec.CSI, pv.Spec.ClaimRef
	ours := source != nil && (source.Driver == o.Driver || source.Driver == o.LocalDriver)
	if !ours || ref == nil || ref.UID == "" || pv.DeletionTimestamp != nil {
		o.bound.drop(pv.Name)
		return
	}
	o.bound.set(pv.Name, binding{volume: source.VolumeHandle, claim: string(ref.UID)})
	o.compareBound(source.VolumeHandle)
}

// compareBound lets a volume follow its PersistentVolume.
func (o *owner) compareBound(name string) {
	pv, waits := o.bound.by[name]
	v := o.index.Volume(name)
	if !waits || v == nil {
		return
	}
	switch of := o.bound.of[pv]; {
	case v.Claim == of.claim || v.Flags.Has(poolmessages.FlagExternal):
		o.bound.drop(pv)
	case !of.tried:
		o.letFollow(name, v)
	}
}
