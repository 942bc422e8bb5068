package fakedriver

import (
	"context"
	"slices"

	"github.com/katbox/katbox/soak/internal/kubelet"
)

// learn learns how pods end, if the kubelet says so.
func (r *run) learn(ctx context.Context) {
	kubelet.Endings(ctx, r.cfg.Kubelet, r.disk.end)
}

// end notes how a pod has ended.
func (d *disk) end(pod, phase string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended == nil {
		d.ended = map[string]string{}
	}
	d.ended[pod] = phase
}

// first returns which of the retained volumes, which are in the order of their age, is to be evicted: those of
// pods that succeeded go before others, of which the one at due is the oldest whose time has come.
func (r *run) first(list []record, due int) record {
	if r.cfg.Bug == EvictsNewest {
		return list[len(list)-1]
	}
	r.disk.mu.Lock()
	defer r.disk.mu.Unlock()
	succeeded := func(v record) bool { return (r.disk.ended[v.pod] == "Succeeded") != (r.cfg.Bug == EvictsFailures) }
	if i := slices.IndexFunc(list, succeeded); i >= 0 {
		return list[i]
	}
	return list[due]
}
