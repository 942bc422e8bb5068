package index

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
)

// unreachableFor is how long a pool that was never imported is waited for while its array gives no
// answer that is of use. There may be no such array.
const unreachableFor = time.Hour

// mayBeUnknown returns an error while an array may have what no resource tells of: resources may be lost,
// and the import makes them again. Until each pool was imported once, what is unknown is not gone.
func (a *Admission) mayBeUnknown(what string) error {
	for _, name := range slices.Sorted(maps.Keys(a.objects)) {
		p := a.objects[name]
		if p.DeletionTimestamp == nil && p.Status.LastSyncTime == nil && !givenUp(p) {
			return fmt.Errorf("%w: %s is not known, and pool %s, whose volumes have not been imported yet, may have it; "+
				"try again, or delete that Pool", volume.ErrUnavailable, what, name)
		}
	}
	return nil
}

// givenUp reports whether the array of a pool has not been reached, or is none that Katbox can use, for long.
func givenUp(p *v1alpha1.Pool) bool {
	for _, name := range []string{v1alpha1.ConditionReachable, v1alpha1.ConditionCompatible} {
		c := meta.FindStatusCondition(p.Status.Conditions, name)
		if c != nil && c.Status == metav1.ConditionFalse && time.Since(c.LastTransitionTime.Time) >= unreachableFor {
			return true
		}
	}
	return false
}
