package hub

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unique"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
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
			return fmt.Errorf("%w: it counts namespace %q twice", errProtocol, kept[i].tenant.Value().namespace)
		}
	}
	h.now.Store(&kept)
	return nil
}

// change replaces those holdings that have changed. One without volumes is gone.
func (h *holdings) change(changed []api.Holding) error {
	if len(changed) == 0 {
		return nil
	}
	now := h.now.Load()
	if now == nil {
		return fmt.Errorf("%w: it says what has changed before it has said what it holds", errProtocol)
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
	// What takes the place of others may come before those go.
	if len(all) > 2*mostHoldings {
		return fmt.Errorf("%w: it holds volumes of more than %d namespaces", errProtocol, mostHoldings)
	}
	kept := slices.SortedFunc(maps.Values(all), compareHoldings)
	h.now.Store(&kept)
	return nil
}

// of returns the holdings of the namespace with that name, and that of the namespaces that the node
// does not count each.
func (h *holdings) of(namespace string) []api.Holding {
	all := *h.now.Load()
	return append(between(all, namespace), between(all, volume.OtherNamespaces)...)
}

// between returns the holdings with exactly that name.
func between(all []holding, namespace string) (named []api.Holding) {
	i, _ := slices.BinarySearchFunc(all, namespace, func(k holding, name string) int {
		return cmp.Compare(k.tenant.Value().namespace, name)
	})
	for _, k := range all[i:] {
		t := k.tenant.Value()
		if t.namespace != namespace {
			break
		}
		named = append(named, api.Holding{
			Namespace: t.namespace, NamespaceUID: t.uid, Verdict: t.verdict,
			Volumes: int(k.volumes), Newest: time.Unix(0, k.newest), Oldest: time.Unix(0, k.oldest),
		})
	}
	return named
}

// sums returns three holdings at most; see [Registry.Each].
func (h *holdings) sums() []api.Holding {
	all := *h.now.Load()
	sums := append(between(all, ""), between(all, volume.OtherNamespaces)...)
	rest := holding{oldest: math.MaxInt64}
	unknown := false // when the newest of some was retained
	for _, k := range all {
		if name := k.tenant.Value().namespace; name == "" || name == volume.OtherNamespaces {
			continue
		}
		rest.volumes += k.volumes
		unknown = unknown || k.newest == 0
		rest.newest, rest.oldest = max(rest.newest, k.newest), min(rest.oldest, k.oldest)
	}
	if unknown {
		rest.newest = 0
	}
	if rest.volumes > 0 {
		sums = append(sums, api.Holding{
			Namespace: SumOfNamespaces, Volumes: int(rest.volumes), Newest: time.Unix(0, rest.newest), Oldest: time.Unix(0, rest.oldest),
		})
	}
	return sums
}

// Union returns what a node holds of a namespace by two accounts, one of which may be older. It changes neither. Of each tenant the
// newest volume counts, and most of all one that may be anywhere: believing too much costs a question to the node, too little a volume.
func Union(a, b []api.Holding) []api.Holding {
	all := slices.Clone(a)
	for _, h := range b {
		i := slices.IndexFunc(all, func(o api.Holding) bool {
			return o.Namespace == h.Namespace && o.NamespaceUID == h.NamespaceUID && o.Verdict == h.Verdict
		})
		switch {
		case i < 0:
			all = append(all, h)
		case Nanoseconds(all[i].Newest) > 0 && (Nanoseconds(h.Newest) == 0 || h.Newest.After(all[i].Newest)):
			all[i] = h
		}
	}
	return all
}

func compareHoldings(a, b holding) int {
	x, y := a.tenant.Value(), b.tenant.Value()
	return cmp.Or(strings.Compare(x.namespace, y.namespace), strings.Compare(x.uid, y.uid), strings.Compare(x.verdict, y.verdict))
}

// compact checks a holding and makes it small.
func compact(h api.Holding) (holding, error) {
	switch {
	case len(h.Namespace) > mostName, len(h.NamespaceUID) > mostName:
		return holding{}, fmt.Errorf("%w: the name or UID of a namespace is longer than %d bytes", errProtocol, mostName)
	case h.Volumes < 0, h.Volumes > mostVolumes:
		return holding{}, fmt.Errorf("%w: it holds %d volumes of namespace %q", errProtocol, h.Volumes, h.Namespace)
	}
	switch h.Verdict {
	case "", volume.Unasked.String(), volume.Confirmed.String(), volume.Denied.String():
	default:
		return holding{}, fmt.Errorf("%w: %.20q is not a verdict", errProtocol, h.Verdict)
	}
	return holding{
		tenant:  unique.Make(tenant{h.Namespace, h.NamespaceUID, h.Verdict}),
		volumes: int64(h.Volumes), newest: Nanoseconds(h.Newest), oldest: Nanoseconds(h.Oldest),
	}, nil
}

// Nanoseconds returns a time as nanoseconds since 1970, and 0 for years that have none.
func Nanoseconds(t time.Time) int64 {
	if y := t.Year(); y < 1970 || y > 2261 {
		return 0
	}
	return t.UnixNano()
}

// summary is an api.Summary whose lists are bounded before they are in memory.
type summary struct {
	Time     time.Time                            `json:"time"`
	Full     bool                                 `json:"full"`
	Holdings bounded[api.Holding, holdingsBound]  `json:"holdings"`
	Asks     bounded[api.OwnerAsk, questionBound] `json:"asks"`
	Archive  *api.ArchiveWaiting                  `json:"archive"`
	Uploads  bounded[api.UploadAsk, uploadBound]  `json:"uploads"`
}

type (
	holdingsBound struct{}
	questionBound struct{}
	uploadBound   struct{}
)

func (holdingsBound) most() int { return mostHoldings }
func (questionBound) most() int { return mostAsks }
func (uploadBound) most() int   { return mostUploadLine }

// bounded is a list in JSON that is not read beyond its bound.
type bounded[T any, B interface{ most() int }] []T

// UnmarshalJSON reads the list.
func (l *bounded[T, B]) UnmarshalJSON(data []byte) error {
	var bound B
	d := json.NewDecoder(bytes.NewReader(data))
	if open, err := d.Token(); err != nil {
		return err
	} else if open != json.Delim('[') {
		return fmt.Errorf("%w: a list begins with %v", errProtocol, open)
	}
	for d.More() {
		if len(*l) == bound.most() {
			return fmt.Errorf("%w: a list in a summary has more than %d entries", errProtocol, bound.most())
		}
		var one T
		if err := d.Decode(&one); err != nil {
			return err
		}
		*l = append(*l, one)
	}
	return nil
}
