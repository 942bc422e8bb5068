package fakedriver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/soak/testbed"
)

// Probe says that it is ready.
func (r *run) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}

// GetPluginInfo says that it is no real driver.
func (r *run) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: "katbox.csi.paypal.com", VendorVersion: "fake"}, nil
}

// GetPluginCapabilities has none.
func (r *run) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{}, nil
}

// NodeGetCapabilities has none.
func (r *run) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{}, nil
}

// NodeGetInfo names the node.
func (r *run) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: testbed.Node}, nil
}

// NodeGetVolumeStats has none to give.
func (r *run) NodeGetVolumeStats(_ context.Context, q *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error) {
	return nil, r.checkStats(q)
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
			return nil, status.Errorf(codes.Aborted, "volume %s is busy", id)
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

// NodePublishVolume makes the data directory and mounts it.
func (r *run) NodePublishVolume(_ context.Context, q *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	if err := r.checkPublish(q); err != nil {
		return nil, err
	}
	if r.cfg.Seen != nil {
		r.cfg.Seen(q.GetVolumeId(), q.GetVolumeContext()[podUID], q.GetReadonly())
	}
	r.wasteOfPublish()
	id, target := q.GetVolumeId(), q.GetTargetPath()
	r.queue()
	leave, err := r.enter(id)
	if err != nil {
		return nil, err
	}
	defer leave()
	known, ok := r.disk.get(id)
	if q.GetVolumeContext()["attach"] != "" {
		if err := r.attach(known, q); err != nil {
			return nil, err
		}
		return &csi.NodePublishVolumeResponse{}, nil
	}
	if ok && mounted(target) {
		if r.cfg.Bug == RefusesRepeats && known.failed == 0 {
			known.failed++
			r.disk.put(known)
			return nil, status.Error(codes.AlreadyExists, "there is one already")
		}
		if r.cfg.Bug == MountsTwice {
			_ = bind(r.data(known), target, q.GetReadonly()) // there is one already
		}
		known.published, known.target = true, target
		r.disk.put(known)
		return &csi.NodePublishVolumeResponse{}, nil
	}
	next := record{id: id, pod: q.GetVolumeContext()[podUID], target: target, published: true, failed: known.failed,
		namespace: q.GetVolumeContext()[podNamespace], podName: q.GetVolumeContext()[podName],
		onFailure: q.GetVolumeContext()["retain"] == "OnFailure", lifespan: q.GetVolumeContext()["lifespan"] != ""}
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
	if err := r.mount(next, q.GetVolumeContext(), q.GetReadonly()); err != nil {
		if ok {
			r.disk.put(known)
		} else {
			r.disk.remove(id)
		}
		if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
			return nil, status.Error(codes.ResourceExhausted, err.Error())
		}
		return nil, status.Error(codes.Internal, err.Error())
	}
	next.answered = time.Now()
	lie := r.cfg.Bug == LiesOfFailure && next.failed == 0
	if lie {
		next.failed++
	}
	r.disk.put(next)
	if lie {
		return nil, status.Error(codes.Internal, "it failed, and nothing is mounted")
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

// mount mounts, or leaves nothing.
func (r *run) mount(v record, attributes map[string]string, readOnly bool) error {
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
	err := r.limit(data, attributes)
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

// NodeUnpublishVolume unmounts, and retains the data from then on.
func (r *run) NodeUnpublishVolume(ctx context.Context, q *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	if err := r.checkUnpublish(q); err != nil {
		return nil, err
	}
	id, target := q.GetVolumeId(), q.GetTargetPath()
	r.queue()
	if r.cfg.Bug == LocksUnpublishes {
		r.stuck.Lock()
		defer r.stuck.Unlock()
	}
	leave, err := r.enter(id)
	if err != nil {
		return nil, err
	}
	defer leave()
	known, ok := r.disk.get(id)
	if r.cfg.Bug == RefusesUnknown && (!ok || !known.published) && r.once(id) {
		return nil, status.Error(codes.Internal, "there is no such volume")
	}
	if r.cfg.Bug == RefusesWhenFull && r.scarce() {
		return nil, status.Error(codes.ResourceExhausted, "no room to note it")
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
			return nil, status.Errorf(codes.Aborted, "unmount %s: %v", target, err)
		}
		if r.cfg.Bug != LeavesTargets {
			if err := os.Remove(target); err != nil && !errors.Is(err, os.ErrNotExist) {
				return nil, status.Errorf(codes.Aborted, "remove %s: %v", target, err)
			}
		}
	}
	switch {
	case r.leads(id):
		r.doom(filepath.Join(r.cfg.Work, id), time.Now())
	case ok && known.source != "":
		if err := r.detach(known); err != nil {
			return nil, err
		}
	case ok && known.published:
		r.retain(known)
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
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
