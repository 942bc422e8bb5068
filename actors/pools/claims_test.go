package pools

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/katbox/katbox/actors/pools/env"
	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/model/v1alpha1"
)

// TestHostileClaims: of claims with an annotation that is no lifespan no more is remembered than is needed to say so
// once, however long it is.
func TestHostileClaims(t *testing.T) {
	o := newOwner(&env.Environment{})
	long := strings.Repeat("x", 250<<10)
	for i := range 1000 {
		c := rules.ClaimObject("ns", fmt.Sprint("claim-", i), types.UID(fmt.Sprint("uid-", i)))
		c.Annotations = map[string]string{v1alpha1.LifespanAnnotation: long}
		o.claimSeen(c)
	}
	remembered := 0
	for key, said := range o.claims.said {
		remembered += len(key) + len(said.uid) + len(said.invalid)
		if said.invalid == "" || said.lifespan != rules.NoLifespan {
			t.Fatalf("%s: %+v", key, said)
		}
	}
	if len(o.claims.said) != 1000 || remembered > 1000<<10 {
		t.Errorf("%d claims take %d bytes", len(o.claims.said), remembered)
	}
}
