package kubelet

import (
	"context"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// verify waits for the attach-detach controller: a persistent volume is on the
// node as soon as it is attached, or need not be.
func (k *Kubelet) verify(v *Volume) operation {
	return func(context.Context) (func(), error) {
		if _, ok := k.cfg.API.attached(v.Plan.ID); !ok {
			return func() {}, errNotAttached
		}
		return func() { k.actual.devices[v.Plan.ID] = &device{volume: v} }, nil
	}
}

// stage stages a volume, if the driver does that at all. As in the kubelet the
// directory is made in any case.
func (k *Kubelet) stage(ctx context.Context, v *Volume, before mount) (verdict, error) {
	path := v.StagingPath(k.cfg.Root, k.cfg.Driver)
	publishContext, ok := k.cfg.API.attached(v.Plan.ID)
	if !ok {
		return untouched, errNotAttached
	}
	can, err := k.client.capabilities(ctx, v)
	if err != nil {
		return untouched, err
	}
	if err := prepareStaging(path, volumeData{VolumeHandle: v.Plan.ID, DriverName: k.cfg.Driver}); err != nil {
		v.Story.Note("not staged: %v", err)
		return untouched, err
	}
	if !can.staging() {
		return succeeded, nil
	}
	if can, err = k.client.capabilities(ctx, v); err != nil {
		return untouched, err
	}
	err = k.client.stage(ctx, v, &csi.NodeStageVolumeRequest{
		VolumeId:          v.Plan.ID,
		PublishContext:    publishContext,
		StagingTargetPath: path,
		VolumeCapability:  can.access(v),
	})
	what := verdictOf(err)
	if what == failed && !before.reconstructed {
		k.clean(v, path)
	}
	return what, err
}

// unmountDevice unstages a volume and removes its staging directory.
func (k *Kubelet) unmountDevice(handle string) operation {
	v := k.actual.devices[handle].volume
	return func(ctx context.Context) (func(), error) {
		nothing := func() {}
		can, err := k.client.capabilities(ctx, v)
		if err != nil {
			return nothing, err
		}
		path := v.StagingPath(k.cfg.Root, k.cfg.Driver)
		if can.staging() {
			if err := k.client.unstage(ctx, v, path); err != nil {
				return func() { k.doubt(handle) }, err
			}
		}
		stillMounted, err := removeMountDir(path, k.cfg.Mounted)
		if err != nil {
			v.Story.Note("the kubelet cannot remove the staging path: %v", err)
			return nothing, err
		}
		if stillMounted {
			v.Story.Note("%s is still mounted after an unstage", path)
		}
		return func() { k.actual.devices[handle].mount = mount{} }, nil
	}
}

// doubt notes that an unstage did not succeed, and may yet: a pod that comes now
// has the volume staged again (kubernetes operation_generator.go,
// GenerateUnmountDeviceFunc and GenerateUnmapDeviceFunc).
func (k *Kubelet) doubt(handle string) {
	d := k.actual.devices[handle]
	d.state = min(d.state, uncertain)
}

// prepareStaging makes the staging path, which unlike a target is the kubelet's,
// and the volume data beside it.
func prepareStaging(path string, data volumeData) error {
	if err := writeVolumeData(filepath.Dir(path), data); err != nil {
		return err
	}
	return makeDir(path)
}
