package fakedriver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/csi/inline"
)

// calls are what the node's CSI edge hands on.
type calls struct{ *run }

var _ inline.Volumes = calls{}

// Ready says that it is.
func (calls) Ready(context.Context) error { return nil }

// Stats has none to give.
func (calls) Stats(_ context.Context, id volume.ID, _ string) (volume.Stats, error) {
	return volume.Stats{}, fmt.Errorf("statistics of volume %s: %w", id, volume.ErrNotFound)
}

// queue has a call wait for those that hold all up, if that is the bug. Only
// calls wait, or data would be kept too long besides.
func (r *run) queue() {
	if r.cfg.Bug == LocksAll || r.cfg.Bug == ReadingDelays {
		r.stuck.Lock()
		defer r.stuck.Unlock()
	}
}

// enter lets one call at a time work on a volume. It waits for the driver's own work on it.
func (r *run) enter(id string) (leave func(), err error) {
	for {
		r.mu.Lock()
		ended, busy := r.busy[id]
		if !busy {
			r.busy[id] = nil
		}
		r.mu.Unlock()
		switch {
		case !busy:
			return func() { r.leave(id) }, nil
		case ended == nil:
			return nil, fmt.Errorf("volume %s: %w", id, volume.ErrBusy)
		}
		<-ended
	}
}

// begin lets the driver itself work on a volume, if nothing else does.
func (r *run) begin(id string) (end func(), ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, busy := r.busy[id]; busy {
		return nil, false
	}
	ended := make(chan struct{})
	r.busy[id] = ended
	return func() {
		r.leave(id)
		close(ended)
	}, true
}

func (r *run) leave(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.busy, id)
}

// once is true for each volume once.
func (r *run) once(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	did := r.spoilt[id]
	r.spoilt[id] = true
	return !did
}

// Publish makes the data directory and mounts it.
func (r calls) Publish(_ context.Context, p volume.Publication) error {
	if p.Refused != nil {
		return p.Refused
	}
	if r.cfg.Seen != nil {
		r.cfg.Seen(string(p.ID), string(p.Pod), p.Target.ReadOnly)
	}
	r.wasteOfPublish()
	id, target := string(p.ID), p.Target.Path
	r.queue()
	leave, err := r.enter(id)
	if err != nil {
		return err
	}
	defer leave()
	known, ok := r.disk.get(id)
	if p.Attach != (volume.Place{}) {
		return r.attach(known, p)
	}
	if ok && mounted(target) {
		if r.cfg.Bug == RefusesRepeats && known.failed == 0 {
			known.failed++
			r.disk.put(known)
			return volume.ErrConflict
		}
		if r.cfg.Bug == MountsTwice {
			_ = bind(r.data(known), target, p.Target.ReadOnly) // there is one already
		}
		known.published, known.target = true, target
		r.disk.put(known)
		r.uplink.Published(r.describe(known).Record)
		return nil
	}
	next := record{id: id, pod: string(p.Pod), target: target, published: true, failed: known.failed, namespace: p.Namespace,
		podName: p.PodName, onFailure: p.Terms.Retain == volume.RetainOnFailure, keep: p.Terms.Lifespan}
	r.disk.put(next)
	if r.cfg.Bug != ReadsAlong && r.cfg.Bug != ReadsPublished {
		r.endLeases(id, volume.ErrNotRetained)
	}
	if r.cfg.Bug == LosesAgain && ok && !known.published {
		_ = emptyDir(r.data(next)) // what is left is not what it was
	}
	if r.cfg.Bug == DeletesAgain && ok && !known.published {
		r.doom(r.data(next), known.unpublished)
	}
	if err := r.mount(next, p.Terms.Limit, p.Target.ReadOnly); err != nil {
		if ok {
			r.disk.put(known)
		} else {
			r.disk.remove(id)
		}
		if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
			return fmt.Errorf("%w: %w", volume.ErrNoSpace, err)
		}
		return fmt.Errorf("%w: %w", volume.ErrFailed, err)
	}
	next.answered = time.Now()
	lie := r.cfg.Bug == LiesOfFailure && next.failed == 0
	if lie {
		next.failed++
	}
	r.disk.put(next)
	if lie {
		return volume.ErrFailed
	}
	r.uplink.Published(r.describe(next).Record)
	return nil
}

// mount mounts, or leaves nothing.
func (r *run) mount(v record, limit volume.Size, readOnly bool) error {
	data := r.data(v)
	if err := os.MkdirAll(data, 0o777); err != nil {
		_ = os.Remove(filepath.Dir(data)) // it stays if anything is in there
		return fmt.Errorf("data directory: %w", err)
	}
	undo := func() {
		if r.cfg.Bug == DeletesFailed {
			_ = emptyDir(data) // what is left is no loss
		}
		_ = os.Remove(v.target)
		_ = os.Remove(data) // neither goes if anything is in there
		_ = os.Remove(filepath.Dir(data))
	}
	err := r.limit(data, limit)
	if r.cfg.Bug == DeletesFailed && r.scarce() {
		err = unix.ENOSPC
	}
	if err != nil {
		undo()
		return err
	}
	if err := os.Mkdir(v.target, 0o750); err != nil && !errors.Is(err, os.ErrExist) {
		undo()
		return fmt.Errorf("target: %w", err)
	}
	if err := bind(data, v.target, readOnly && r.cfg.Bug != MountsWritable); err != nil {
		undo()
		return err
	}
	return nil
}

// Unpublish unmounts, and retains the data from then on.
func (r calls) Unpublish(ctx context.Context, volumeID volume.ID, target string) error {
	id := string(volumeID)
	r.queue()
	if r.cfg.Bug == LocksUnpublishes {
		r.stuck.Lock()
		defer r.stuck.Unlock()
	}
	leave, err := r.enter(id)
	if err != nil {
		return err
	}
	defer leave()
	known, ok := r.disk.get(id)
	if r.cfg.Bug == RefusesUnknown && (!ok || !known.published) && r.once(id) {
		return fmt.Errorf("%w: there is no such volume", volume.ErrFailed)
	}
	if r.cfg.Bug == RefusesWhenFull && r.scarce() {
		return fmt.Errorf("note it: %w", volume.ErrNoSpace)
	}
	if r.cfg.Bug == LeavesMounts && mounted(target) && r.once(id) {
		r.loops.Go(func() {
			_ = retry.Pause(r.ctx, rest)
			_ = unmount(target) // the kubelet looks after what is left
		})
	} else {
		if err := r.unmount(ctx, target); err != nil {
			if r.cfg.Bug == DeletesBusy && r.once(id) {
				r.doom(r.data(known), time.Now())
			}
			return fmt.Errorf("%w: unmount %s: %w", volume.ErrUncertain, target, err)
		}
		if r.cfg.Bug != LeavesTargets {
			if err := os.Remove(target); err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("%w: remove %s: %w", volume.ErrUncertain, target, err)
			}
		}
	}
	switch {
	case ok && known.source != "":
		if err := r.detach(known); err != nil {
			return err
		}
	case ok && known.published:
		r.retain(known)
	}
	return nil
}

// unmount unmounts what is there, if anything. A driver that lets all wait
// insists, and keeps the others out meanwhile.
func (r *run) unmount(ctx context.Context, target string) error {
	err := unmount(target)
	if r.cfg.Bug != LocksAll && r.cfg.Bug != LocksUnpublishes || !errors.Is(err, unix.EBUSY) {
		return err
	}
	if r.cfg.Bug == LocksAll {
		r.stuck.Lock()
		defer r.stuck.Unlock()
	}
	for errors.Is(err, unix.EBUSY) && ctx.Err() == nil {
		_ = retry.Pause(ctx, sweepInterval)
		err = unmount(target)
	}
	return err
}
