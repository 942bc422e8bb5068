package nodes

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unique"

	"github.com/katbox/katbox/internal/api"
	"github.com/katbox/katbox/internal/volume"
)

const (
	// mostHoldings bounds the namespaces of a node, mostVolumes the volumes that it says it has of one.
	mostHoldings = 10_000
	mostVolumes  = 100_000_000
	// mostName bounds names of namespaces and their UIDs.
	mostName = 128
)

// tenant is whose volumes a holding counts. The nodes of a cluster hold the same tenants, so they
// are kept once.
type tenant struct{ namespace, uid, verdict string }

// holding is an api.Holding in 32 bytes: 5,000 nodes have 250,000 of them.
type holding struct {
	tenant unique.Handle[tenant]
	// newest and oldest are nanoseconds since 1970.
	newest, oldest int64
	volumes        int64
}

// holdings is what a node holds, sorted by namespace. The slice that it points to never changes.
type holdings struct{ now atomic.Pointer[[]holding] }

// set replaces all holdings.
func (h *holdings) set(all []api.Holding) error {
	kept := make([]holding, 0, len(all))
	for _, one := range all {
		k, err := compact(one)
		if err != nil {
			return err
		}
		if k.volumes > 0 {
			kept = append(kept, k)
		}
	}
	slices.SortFunc(kept, compareHoldings)
	for i := 1; i < len(kept); i++ {
		if kept[i].tenant == kept[i-1].tenant {
			return fmt.Errorf("%w: it counts namespace %q twice", errLied, kept[i].tenant.Value().namespace)
		}
	}
	h.now.Store(&kept)
	return nil
}

// change replaces those holdings that have changed. One without volumes is gone.
func (h *holdings) change(changed []api.Holding) error {
	now := h.now.Load()
	if now == nil {
		return fmt.Errorf("%w: its first summary is not a full one", errLied)
	}
	if len(changed) == 0 {
		return nil
	}
	all := make(map[unique.Handle[tenant]]holding, len(*now)+len(changed))
	for _, old := range *now {
		all[old.tenant] = old
	}
	for _, one := range changed {
		k, err := compact(one)
		switch {
		case err != nil:
			return err
		case k.volumes == 0:
			delete(all, k.tenant)
		default:
			all[k.tenant] = k
		}
	}
	if len(all) > mostHoldings {
		return fmt.Errorf("%w: it holds volumes of more than %d namespaces", errLied, mostHoldings)
	}
	kept := slices.SortedFunc(maps.Values(all), compareHoldings)
	h.now.Store(&kept)
	return nil
}

// known reports whether the node has said what it holds.
func (h *holdings) known() bool { return h.now.Load() != nil }

// of returns the holdings of the namespace with that name.
func (h *holdings) of(namespace string) []api.Holding {
	now := h.now.Load()
	if now == nil {
		return nil
	}
	i, _ := slices.BinarySearchFunc(*now, namespace, func(k holding, name string) int {
		return cmp.Compare(k.tenant.Value().namespace, name)
	})
	var of []api.Holding
	for _, k := range (*now)[i:] {
		t := k.tenant.Value()
		if t.namespace != namespace {
			break
		}
		of = append(of, api.Holding{
			Namespace: t.namespace, NamespaceUID: t.uid, Verdict: t.verdict,
			Volumes: int(k.volumes), Newest: time.Unix(0, k.newest), Oldest: time.Unix(0, k.oldest),
		})
	}
	return of
}

// sum returns all holdings as one, of no namespace; false if there are none.
func (h *holdings) sum() (sum api.Holding, ok bool) {
	now := h.now.Load()
	if now == nil || len(*now) == 0 {
		return sum, false
	}
	newest, oldest := (*now)[0].newest, (*now)[0].oldest
	for _, k := range *now {
		sum.Volumes += int(k.volumes)
		newest, oldest = max(newest, k.newest), min(oldest, k.oldest)
	}
	sum.Newest, sum.Oldest = time.Unix(0, newest), time.Unix(0, oldest)
	return sum, true
}

func compareHoldings(a, b holding) int {
	x, y := a.tenant.Value(), b.tenant.Value()
	return cmp.Or(strings.Compare(x.namespace, y.namespace), strings.Compare(x.uid, y.uid), strings.Compare(x.verdict, y.verdict))
}

// compact checks a holding and makes it small.
func compact(h api.Holding) (holding, error) {
	switch {
	case len(h.Namespace) > mostName, len(h.NamespaceUID) > mostName:
		return holding{}, fmt.Errorf("%w: the name or UID of a namespace is longer than %d bytes", errLied, mostName)
	case h.Volumes < 0, h.Volumes > mostVolumes:
		return holding{}, fmt.Errorf("%w: it holds %d volumes of namespace %q", errLied, h.Volumes, h.Namespace)
	}
	switch h.Verdict {
	case "", volume.Unasked.String(), volume.Confirmed.String(), volume.Denied.String():
	default:
		return holding{}, fmt.Errorf("%w: %.20q is not a verdict", errLied, h.Verdict)
	}
	return holding{
		tenant:  unique.Make(tenant{h.Namespace, h.NamespaceUID, h.Verdict}),
		volumes: int64(h.Volumes), newest: nanoseconds(h.Newest), oldest: nanoseconds(h.Oldest),
	}, nil
}

// nanoseconds returns a time as nanoseconds since 1970, and 0 for years that have none.
func nanoseconds(t time.Time) int64 {
	if y := t.Year(); y < 1970 || y > 2261 {
		return 0
	}
	return t.UnixNano()
}

// summary is an api.Summary whose lists are bounded before they are in memory.
type summary struct {
	Full     bool                                 `json:"full"`
	Holdings bounded[api.Holding, holdingsBound]  `json:"holdings"`
	Asks     bounded[api.OwnerAsk, questionBound] `json:"asks"`
}

type (
	holdingsBound struct{}
	questionBound struct{}
)

func (holdingsBound) most() int { return mostHoldings }
func (questionBound) most() int { return mostAsks }

// bounded is a list in JSON that is not read beyond its bound.
type bounded[T any, B interface{ most() int }] []T

// UnmarshalJSON reads the list.
func (l *bounded[T, B]) UnmarshalJSON(data []byte) error {
	var bound B
	d := json.NewDecoder(bytes.NewReader(data))
	if open, err := d.Token(); err != nil || open != json.Delim('[') {
		return fmt.Errorf("%w: a list begins with %v (%v)", errLied, open, err)
	}
	for d.More() {
		if len(*l) == bound.most() {
			return fmt.Errorf("%w: a list in a summary has more than %d entries", errLied, bound.most())
		}
		var one T
		if err := d.Decode(&one); err != nil {
			return err
		}
		*l = append(*l, one)
	}
	return nil
}
