package fakedriver

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// Pin keeps a retained volume until then.
func (s volumes) Pin(_ context.Context, id volume.ID, until time.Time, _, _ string) (volume.Description, error) {
	if s.cfg.Bug == PinsNothing {
		until = time.Time{}
	}
	return s.decide(id, until, time.Time{})
}

// Unpin takes back what a person decided.
func (s volumes) Unpin(_ context.Context, id volume.ID, _ string) (volume.Description, error) {
	return s.decide(id, time.Time{}, time.Time{})
}

// Release lets a retained volume go.
func (s volumes) Release(_ context.Context, id volume.ID, _, _ string) (volume.Description, error) {
	released := time.Now()
	if s.cfg.Bug == ReleasesNothing {
		released = time.Time{}
	}
	return s.decide(id, time.Time{}, released)
}

// decide notes what a person decided about a retained volume.
func (r *run) decide(id volume.ID, pinned, released time.Time) (volume.Description, error) {
	leave, err := r.enter(string(id))
	if err != nil {
		return volume.Description{}, fmt.Errorf("volume %s: %w", id, volume.ErrBusy)
	}
	defer leave()
	v, err := r.kept(id)
	if err != nil {
		return volume.Description{}, err
	}
	v.pinned, v.released = pinned, released
	r.disk.put(v)
	return r.describe(v), nil
}

// Purge removes a retained volume.
func (s volumes) Purge(_ context.Context, id volume.ID, _, _ string) error {
	v, err := s.kept(id)
	if err != nil || s.cfg.Bug == RemovesNothing {
		return err
	}
	if s.cfg.Bug == RemovesAnother {
		all := s.disk.all(false)
		if next := all[len(all)-1]; next.id != v.id {
			s.delete(next, volume.Expired)
		}
	}
	s.delete(v, volume.Purged)
	if _, there := s.disk.get(v.id); there {
		return fmt.Errorf("volume %s: something is mounted in it, or it changes: %w", id, volume.ErrBusy)
	}
	return nil
}

// bury remembers a volume that is gone.
func (r *run) bury(v record, reason volume.Reason) {
	now := time.Now()
	r.people.mu.Lock()
	r.former = append(r.former, former{v, now})
	r.people.mu.Unlock()
	stone := volume.Tombstone{Record: r.describe(v).Record, Gone: now, Reason: reason}
	times := 1
	switch r.cfg.Bug {
	case BuriesNothing:
		return
	case BuriesTwice:
		times = 2
	case BuriesExpired:
		stone.Reason = volume.Expired
	case BuriesOthers:
		stone.Record.PodName = "another"
	}
	r.disk.mu.Lock()
	defer r.disk.mu.Unlock()
	for range times {
		stone.Number = uint64(len(r.disk.gone) + 1)
		r.disk.gone = append(r.disk.gone, stone)
	}
}

// Gone returns a page of the volumes that are gone, the last one first.
func (s volumes) Gone(_ context.Context, q volume.GoneSelection) (volume.GonePage, error) {
	s.disk.mu.Lock()
	all := slices.Clone(s.disk.gone)
	s.disk.mu.Unlock()
	var page volume.GonePage
	for _, stone := range slices.Backward(all) {
		if q.Below != 0 && stone.Number >= q.Below {
			continue
		}
		if len(page.Tombstones) == q.Limit {
			page.Next = page.Tombstones[q.Limit-1].Number
			break
		}
		page.Tombstones = append(page.Tombstones, stone)
	}
	return page, nil
}
