package fake

import (
	"context"
	"slices"

	"github.com/katbox/katbox/internal/outcome"
	"github.com/katbox/katbox/internal/outcome/podsapi"
	"github.com/katbox/katbox/internal/volume"
)

// startOutcomes begins to learn how pods end.
func (r *run) startOutcomes() (err error) {
	if r.cfg.Outcomes == "" {
		return nil
	}
	r.outcomes, err = podsapi.Start(podsapi.Config{
		Socket: podsapi.Socket(r.cfg.Kubelet), Driver: r.cfg.Outcomes, Up: func(bool) {},
		Ended: func(_ context.Context, e outcome.Ending) {
			if e.Outcome == volume.Succeeded {
				r.disk.succeed(string(e.Pod))
			}
		},
	})
	return err
}

func (r *run) stopOutcomes() {
	if r.outcomes != nil {
		r.outcomes.Stop()
	}
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
// pods that succeeded go before others.
func (r *run) first(list []record) record {
	if r.cfg.Bug == EvictsNewest {
		return list[len(list)-1]
	}
	r.disk.mu.Lock()
	defer r.disk.mu.Unlock()
	succeeded := func(v record) bool { return r.disk.succeeded[v.pod] }
	if r.cfg.Bug == EvictsFailures {
		succeeded = func(v record) bool { return !r.disk.succeeded[v.pod] }
	}
	return list[max(0, slices.IndexFunc(list, succeeded))]
}
