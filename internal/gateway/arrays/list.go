package arrays

import (
	"cmp"
	"context"
	"errors"

	"github.com/katbox/katbox/internal/gateway/fleet"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
)

// errUnknown: what is retained on arrays is not known just now.
var errUnknown = errors.New("the API server has not yet said what is retained on arrays")

// Node is the name that the fleet knows them by.
func (a *Arrays) Node() string { return fleet.Arrays }

// With returns what is held of a namespace; of all if that is empty.
func (a *Arrays) With(namespace string) []fleet.Held {
	a.mu.RLock()
	defer a.mu.RUnlock()
	if a.volumes == nil {
		return nil
	}
	holdings := a.volumes.holdings(namespace)
	if len(holdings) == 0 {
		return nil
	}
	return []fleet.Held{{Node: a, Holdings: holdings}}
}

// List returns a page of them, the one that was retained last first.
func (a *Arrays) List(_ context.Context, _ fleet.Reader, q api.Query) (api.VolumeList, error) {
	s := volume.Selection{
		Namespace: q.Namespace, Tenancy: q.Tenancy, NoNamespace: q.NoNamespace, PodName: q.Pod, PodPrefix: q.PodPrefix,
		Pod: volume.PodUID(q.PodUID), Job: q.Job, OwnerKind: q.OwnerKind, Since: q.Since, Limit: cmp.Or(q.Limit, api.StandardVolumes),
	}
	if q.Continue != "" {
		before, ok := api.ParseKey(q.Continue)
		if !ok {
			return api.VolumeList{}, api.NewError(api.BadRequest, "%.300q is no place in a list", q.Continue)
		}
		s.Before = before
	}
	a.mu.RLock()
	defer a.mu.RUnlock()
	if a.volumes == nil {
		return api.VolumeList{}, errUnknown
	}
	return a.volumes.page(s), nil
}

// Gone returns nothing: what was deleted on an array is in events.
func (a *Arrays) Gone(context.Context, fleet.Reader, api.GoneQuery) (api.GoneList, error) {
	return api.GoneList{}, nil
}
