package persistent

import (
	"cmp"
	"path/filepath"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/katbox/katbox/internal/lib/edge"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/mount"
)

// staging validates a stage. The error names the first field that is not acceptable.
func (d *Driver) staging(req *csi.NodeStageVolumeRequest) (s pools.Staging, err error) {
	if err := edge.RequiredID("volume_id", req.GetVolumeId()); err != nil {
		return s, err
	}
	path, err := d.stagingPath(req.GetStagingTargetPath())
	if err != nil {
		return s, err
	}
	u, err := useOf(req.GetVolumeCapability())
	if err != nil {
		return s, err
	}
	if err := edge.KnownID("volume_id", req.GetVolumeId()); err != nil {
		return s, err
	}
	if d.cfg.Kind == pools.KindLocal {
		return localStaging(req, path, u)
	}
	a, err := d.attachment(req.GetVolumeId(), req.GetPublishContext())
	if err != nil {
		return s, err
	}
	fsType, err := u.fits(a)
	if err != nil {
		return s, err
	}
	return pools.Staging{
		Volume: req.GetVolumeId(), Path: path, Block: u.block, FSType: fsType, ReadOnly: u.readOnly || a.ReadOnly,
		Options: u.options, Attachment: a,
	}, nil
}

// unstaging validates an unstage.
func (d *Driver) unstaging(req *csi.NodeUnstageVolumeRequest) (id, path string, err error) {
	if err := edge.RequiredID("volume_id", req.GetVolumeId()); err != nil {
		return "", "", err
	}
	path, err = d.stagingPath(req.GetStagingTargetPath())
	if err != nil {
		return "", "", err
	}
	return req.GetVolumeId(), path, edge.KnownID("volume_id", req.GetVolumeId())
}

// publication validates a publish. The kubelet repeats the mount options of the PersistentVolume here;
// those that belong to the file system counted when the volume was staged.
func (d *Driver) publication(req *csi.NodePublishVolumeRequest) (p pools.NodePublication, err error) {
	if err := edge.RequiredID("volume_id", req.GetVolumeId()); err != nil {
		return p, err
	}
	target, err := d.target(req.GetTargetPath())
	if err != nil {
		return p, err
	}
	u, err := useOf(req.GetVolumeCapability())
	if err != nil {
		return p, err
	}
	staged, err := d.stagingPath(req.GetStagingTargetPath())
	if err != nil {
		return p, err
	}
	if err := edge.KnownID("volume_id", req.GetVolumeId()); err != nil {
		return p, err
	}
	p = pools.NodePublication{
		Volume: req.GetVolumeId(), Staging: staged, Target: target, Block: u.block,
		ReadOnly: req.GetReadonly() || u.readOnly, OneTarget: u.oneTarget,
	}
	for _, option := range u.options {
		if mount.KnownFlag(option) {
			p.Options = append(p.Options, option)
		}
	}
	return p, nil
}

// unpublication validates an unpublish.
func (d *Driver) unpublication(req *csi.NodeUnpublishVolumeRequest) (id, target string, err error) {
	if err := edge.RequiredID("volume_id", req.GetVolumeId()); err != nil {
		return "", "", err
	}
	target, err = d.target(req.GetTargetPath())
	if err != nil {
		return "", "", err
	}
	return req.GetVolumeId(), target, edge.KnownID("volume_id", req.GetVolumeId())
}

// expansion validates an expansion. The path is only compared with those at which the volume is: any other
// one is not found.
func (d *Driver) expansion(req *csi.NodeExpandVolumeRequest) (e pools.NodeExpansion, err error) {
	path, err := volumePath(req.GetVolumeId(), req.GetVolumePath())
	if err != nil {
		return e, err
	}
	e = pools.NodeExpansion{Volume: req.GetVolumeId(), Path: path, Required: req.GetCapacityRange().GetRequiredBytes()}
	limit := req.GetCapacityRange().GetLimitBytes()
	switch {
	case e.Required < 0 || limit < 0:
		return pools.NodeExpansion{}, volume.Invalid("capacity_range", "is negative")
	case limit > 0 && limit < e.Required:
		return pools.NodeExpansion{}, volume.Invalid("capacity_range", "has a limit that is less than what is required")
	}
	if c := req.GetVolumeCapability(); c != nil {
		u, err := useOf(c)
		if err != nil {
			return pools.NodeExpansion{}, err
		}
		e.Block = u.block
	}
	return e, nil
}

// statsOf validates a request for stats.
func statsOf(req *csi.NodeGetVolumeStatsRequest) (id, path string, err error) {
	path, err = volumePath(req.GetVolumeId(), req.GetVolumePath())
	if err != nil {
		return "", "", err
	}
	return req.GetVolumeId(), path, nil
}

// healthOf validates a request for health. The path is where the volume is published or else staged; it is empty where
// the kubelet knows neither.
func healthOf(req *csi.NodeGetVolumeHealthRequest) (id, path string, err error) {
	path = cmp.Or(req.GetVolumePublishPath(), req.GetStagingTargetPath())
	if path == "" {
		return req.GetVolumeId(), "", edge.KnownID("volume_id", req.GetVolumeId())
	}
	path, err = volumePath(req.GetVolumeId(), path)
	return req.GetVolumeId(), path, err
}

// volumePath validates the ID of a volume that is staged or published, and the path at which it is.
func volumePath(id, path string) (string, error) {
	if err := edge.RequiredID("volume_id", id); err != nil {
		return "", err
	}
	if path == "" {
		return "", volume.Invalid("volume_path", "is missing")
	}
	return filepath.Clean(path), edge.KnownID("volume_id", id)
}

// stagingPath accepts a path strictly below the kubelet's directory of plugins.
func (d *Driver) stagingPath(path string) (string, error) {
	const field = "staging_target_path"
	clean, err := edge.Path(field, path)
	if err != nil {
		return "", err
	}
	if !strings.HasPrefix(clean, d.pluginsDir+"/") {
		return "", volume.Invalid(field, "is not below the kubelet's directory of plugins "+d.pluginsDir)
	}
	return clean, nil
}

// target accepts a path strictly below the kubelet's pods directory, or below its directory of plugins,
// where it wants block devices.
func (d *Driver) target(path string) (string, error) {
	const field = "target_path"
	clean, err := edge.Path(field, path)
	if err != nil {
		return "", err
	}
	if !strings.HasPrefix(clean, d.podsDir+"/") && !strings.HasPrefix(clean, d.pluginsDir+"/") {
		return "", volume.Invalid(field, "is neither below "+d.podsDir+" nor below "+d.pluginsDir)
	}
	return clean, nil
}
