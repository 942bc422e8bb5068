package fakedriver

import (
	"context"
	"slices"

	"github.com/katbox/katbox/soak/internal/kubelet"
)

// learn learns how pods end, if the kubelet says so.
func (r *run) learn(ctx context.Context) {
	kubelet.Endings(ctx, r.cfg.Kubelet, func(uid, phase string) {
		if phase == "Succeeded" {
			r.disk.succeed(uid)
		}
	})
}

// succeed notes that a pod has succeeded.
func (d *disk) succeed(pod string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.succeeded == nil {
		d.succeeded = map[string]bool{}
	}
	d.succeeded[pod] = true
}

// first returns which of the retained volumes, which are in the order of their age, is to be evicted: those of
// pods that succeeded go before others, of which the one at due is the oldest whose time has come.
func (r *run) first(list []record, due int) record {
	if r.cfg.Bug == EvictsNewest {
		return list[len(list)-1]
	}
	r.disk.mu.Lock()
	defer r.disk.mu.Unlock()
	succeeded := func(v record) bool { return r.disk.succeeded[v.pod] }
	if r.cfg.Bug == EvictsFailures {
		succeeded = func(v record) bool { return !r.disk.succeeded[v.pod] }
	}
	if i := slices.IndexFunc(list, succeeded); i >= 0 {
		return list[i]
	}
	return list[due]
}
