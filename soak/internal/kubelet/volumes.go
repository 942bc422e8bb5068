package kubelet

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/katbox/katbox/soak/testbed"
)

// mount stages a volume if it is persistent and not staged yet, and publishes it.
func (k *Kubelet) mount(v *Volume) operation {
	before := k.actual.of(v)
	staged := mount{state: mounted}
	if v.Plan.Persistent {
		staged = k.actual.devices[v.Plan.ID].mount
	}
	return func(ctx context.Context) (func(), error) {
		staging, volume := untouched, untouched
		var err error
		if staged.state != mounted {
			staging, err = k.stage(ctx, v, staged)
		}
		if err == nil {
			volume, err = k.setUp(ctx, v, before)
		}
		return func() {
			if v.Plan.Persistent {
				// It is there: nothing else may happen to it meanwhile.
				d := k.actual.devices[v.Plan.ID]
				d.mount, d.volume = d.learn(staging), v
			}
			if v.Pod.phase() != forgotten {
				k.actual.set(v, k.actual.of(v).learn(volume))
			}
		}, err
	}
}

// errForgotten says that a pod was removed while one of its volumes waited.
var errForgotten = errors.New("the pod is forgotten")

// setUp publishes a volume, with all that is around it.
func (k *Kubelet) setUp(ctx context.Context, v *Volume, before mount) (verdict, error) {
	r, err := k.publishRequest(ctx, v)
	if err != nil {
		return untouched, err
	}
	if v.Pod.phase() == forgotten {
		return untouched, errForgotten // or its directories would be made again
	}
	if err := writeVolumeData(filepath.Dir(v.Story.Target), describe(v, k.cfg.Driver, k.cfg.Node)); err != nil {
		v.Story.Note("not published: %v", err)
		return untouched, err
	}
	v.sent.Store(r)
	err = v.publish.treat(ctx, v.Plan.Publish, k.cfg.Timing, v.Pod.finished, func(ctx context.Context, giveUp time.Duration) error {
		return k.client.publish(ctx, v, giveUp, r)
	})
	what := verdictOf(err)
	switch {
	case what == succeeded:
		v.Story.Note("mounted")
	case what == failed && !before.reconstructed:
		k.clean(v, v.Story.Target)
	}
	return what, err
}

// publishRequest asks for the capabilities and makes the request of them. As in
// the kubelet each question is a call.
func (k *Kubelet) publishRequest(ctx context.Context, v *Volume) (*csi.NodePublishVolumeRequest, error) {
	r := testbed.Publish(v.Plan.ID, v.Story.Target, v.Pod.Plan.UID, podInfo(v))
	r.Readonly = v.Plan.ReadOnly
	if v.Plan.Persistent {
		can, err := k.client.capabilities(ctx, v)
		if err != nil {
			return nil, err
		}
		if can.staging() {
			r.StagingTargetPath = v.StagingPath(k.cfg.Root, k.cfg.Driver)
		}
		publishContext, ok := k.cfg.API.attached(v.Plan.ID)
		if !ok {
			return nil, errNotAttached
		}
		r.PublishContext = publishContext
	}
	// VOLUME_MOUNT_GROUP: no volume here has a group.
	if _, err := k.client.capabilities(ctx, v); err != nil {
		return nil, err
	}
	can, err := k.client.capabilities(ctx, v)
	if err != nil {
		return nil, err
	}
	r.VolumeCapability = can.access(v)
	return r, nil
}

// unmount unpublishes a volume and removes its directories.
func (k *Kubelet) unmount(v *Volume) operation {
	return func(ctx context.Context) (func(), error) {
		nothing := func() {}
		if err := k.tearDown(ctx, v); err != nil {
			return nothing, err
		}
		stillMounted, err := removeMountDir(v.Story.Target, k.cfg.Mounted)
		if err != nil {
			v.Story.Note("the kubelet cannot remove the target: %v", err)
			return nothing, err
		}
		how := Unpublished
		if stillMounted {
			how = StillMounted
		}
		k.tell(v, how)
		return func() { k.actual.set(v, mount{}) }, nil
	}
}

// tearDown unpublishes a volume, treated on its way as planned.
func (k *Kubelet) tearDown(ctx context.Context, v *Volume) error {
	plan := v.Plan.Unpublish
	if r := v.sent.Load(); plan.Reordered && r != nil && take(&v.unpublish.reordered) {
		// Whatever the two answers are, the unpublish below has the last word:
		// it is not known which of the two came last.
		reorder(ctx, plan.Overtaken,
			func() { _ = k.client.unpublish(ctx, v, 0) },
			func() { _ = k.client.publish(ctx, v, 0, r) },
		)
	}
	return v.unpublish.treat(ctx, plan, k.cfg.Timing, v.Pod.forgotten, func(ctx context.Context, giveUp time.Duration) error {
		return k.client.unpublish(ctx, v, giveUp)
	})
}

// abandon gives up a volume that is not mounted.
func (k *Kubelet) abandon(v *Volume) operation {
	return func(context.Context) (func(), error) {
		k.tell(v, NeverMounted)
		return func() {}, nil
	}
}

// tell tells what became of a volume, the first time.
func (k *Kubelet) tell(v *Volume, how Outcome) {
	if v.settle(how) {
		v.Story.Note("%s", how)
		k.cfg.Listener.Unmounted(v, how)
	}
}

// clean removes the directories of a mount that failed for good. What is left
// the kubelet does not care about.
func (k *Kubelet) clean(v *Volume, path string) {
	stillMounted, err := removeMountDir(path, k.cfg.Mounted)
	switch {
	case err != nil:
		v.Story.Note("the kubelet cannot clean up: %v", err)
	case stillMounted:
		v.Story.Note("%s is still mounted after a final error", path)
	}
}
