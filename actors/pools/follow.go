package pools

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/katbox/katbox/actors/pools/index"
	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/model/v1alpha1"
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
	if lifespan == rules.NoLifespan && invalid == nil && !known && o.index.OfClaim[string(c.UID)] == "" {
		return
	}
	now := claimSaid{uid: string(c.UID), lifespan: lifespan}
	if invalid != nil {
		now.invalid = invalid.Error() // which has the beginning of the annotation alone
	}
	name := o.index.OfClaim[now.uid]
	if now.invalid != "" && now != before && name != "" && o.listed {
		(&task{Environment: o.Environment}).warn(c, "InvalidLifespan", invalid)
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
	if v := o.index.Volumes[name]; v != nil && v.Lifespan != lifespan {
		o.letFollow(name, v)
	}
}

// letFollow lets the actor of a volume write down what has changed of its claim.
func (o *owner) letFollow(name string, v *index.Volume) {
	if !v.Flags.Has(poolmessages.FlagReady) || v.Flags.Has(poolmessages.FlagDeleting) {
		return
	}
	id := rules.KeyOf(rules.KindVolume, name)
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
	o.goOn(rules.KeyOf(rules.KindVolume, name))
}
