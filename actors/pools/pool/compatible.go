package pool

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/v1alpha1"
)

// oldest is the oldest version of a VPSA's software that fits.
var oldest = version{20, 12, 2}

// firstYear is the year of the first releases. The number of a controller's software begins with less: it is no release.
const firstYear = 10

// version is that of a VPSA's software, such as 22.06-sp1-123: the year, the month, the service pack.
type version [3]int

var versionText = regexp.MustCompile(`^\s*([0-9]{1,4})\.([0-9]{1,4})(?:-sp([0-9]{1,4}))?(?:[-.].*)?\s*$`)

// parseVersion reads a version; ok is false for a text that is none.
func parseVersion(text string) (v version, ok bool) {
	parts := versionText.FindStringSubmatch(text)
	if parts == nil {
		return v, false
	}
	for i, part := range parts[1:] {
		v[i], _ = strconv.Atoi(part) // digits, or none
	}
	return v, true
}

// compatible reports whether an array fits, and which of its pools is used.
func compatible(p *v1alpha1.Pool, h array.Health, strict bool) (array.Pool, verdict) {
	if p.Spec.Local != nil {
		return compatibleDisk(p, h, strict)
	}
	fits := good("Compatible")
	v, ok := parseVersion(h.Version)
	switch {
	case !ok || v[0] < firstYear:
		fits = verdict{
			metav1.ConditionTrue, "VersionUnknown", fmt.Sprintf("it does not say its release, only %q; 20.12-sp2 or newer is needed", h.Version),
		}
	case slices.Compare(v[:], oldest[:]) < 0:
		return array.Pool{}, bad("VersionTooOld", fmt.Sprintf("its version is %s; 20.12-sp2 or newer is needed", h.Version))
	}
	switch {
	case p.Status.VPSA.IQN != "" && h.IQN != p.Status.VPSA.IQN:
		return array.Pool{}, bad("NotThisArray", fmt.Sprintf("what answers is the array %s, and the volumes are on %s; "+
			"correct the endpoint, or make another Pool for this array", h.IQN, p.Status.VPSA.IQN))
	case p.Spec.VPSA.Pool != "":
		for _, candidate := range h.Pools {
			if candidate.ID == p.Spec.VPSA.Pool {
				return candidate, fits
			}
		}
		return array.Pool{}, bad("NoSuchPool", fmt.Sprintf("it has no pool %s, only %s; correct spec.vpsa.pool", p.Spec.VPSA.Pool, poolIDs(h)))
	case len(h.Pools) == 0:
		return array.Pool{}, bad("NoSuchPool", "it has no pool; make one there")
	case len(h.Pools) > 1:
		return array.Pool{}, bad("SeveralPools", fmt.Sprintf("it has the pools %s; name one in spec.vpsa.pool", poolIDs(h)))
	}
	return h.Pools[0], fits
}

// compatibleDisk reports whether a pool on a node fits its class, which may be strict.
func compatibleDisk(p *v1alpha1.Pool, h array.Health, strict bool) (array.Pool, verdict) {
	switch {
	case h.IQN != p.Spec.Local.UUID || len(h.Pools) != 1:
		return array.Pool{}, bad("NotThisArray", fmt.Sprintf("what answers is the pool with the UUID %s; this Pool is that of %s",
			h.IQN, p.Spec.Local.UUID))
	case strict && !h.Disk.HardLimit:
		return array.Pool{}, bad("NoHardLimit", rules.NoHardLimit(p.Spec.ClassName, h.Disk))
	}
	return h.Pools[0], good("Compatible")
}

func poolIDs(h array.Health) string {
	if len(h.Pools) == 0 {
		return "none"
	}
	var ids []string
	for _, p := range h.Pools {
		ids = append(ids, p.ID)
	}
	return strings.Join(ids, ", ")
}
