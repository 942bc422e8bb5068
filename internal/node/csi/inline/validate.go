package inline

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/katbox/katbox/internal/lib/edge"
	"github.com/katbox/katbox/internal/lib/kubelet"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/mount"
	"github.com/katbox/katbox/internal/node/policy"
)

// publication validates a publish. The error names the first field that is not acceptable; for the
// attributes of the volume, which only count at its first publish, that is the Publication's own.
func (d *Driver) publication(req *csi.NodePublishVolumeRequest) (volume.Publication, error) {
	attributes := req.GetVolumeContext()
	id, err := volume.ParseID("volume_id", req.GetVolumeId())
	if err != nil {
		return volume.Publication{}, err
	}
	target, err := d.target(req.GetTargetPath())
	if err != nil {
		return volume.Publication{}, err
	}
	t, err := capability(req.GetVolumeCapability())
	if err != nil {
		return volume.Publication{}, err
	}
	t.Path = target
	t.ReadOnly = t.ReadOnly || req.GetReadonly()
	if attributes[kubelet.ContextEphemeral] != "true" {
		return volume.Publication{}, volume.Invalid(contextField(kubelet.ContextEphemeral),
			`is not "true": this driver has ephemeral inline volumes only`)
	}
	pod, err := volume.ParsePodUID(contextField(kubelet.ContextPodUID), attributes[kubelet.ContextPodUID])
	if err != nil {
		return volume.Publication{}, err
	}
	_, name := kubelet.ParseTarget(d.podsDir, target)
	if name == volume.LogsName {
		return volume.Publication{}, volume.Invalid("target_path", "is that of a volume "+name+", a name that the volume in a pod cannot have")
	}
	p := volume.Publication{
		ID: id, Pod: pod, Target: t,
		Namespace:      volume.ObjectName(attributes[kubelet.ContextNamespace]),
		PodName:        volume.ObjectName(attributes[kubelet.ContextPodName]),
		VolumeName:     name,
		ServiceAccount: volume.ObjectName(attributes[kubelet.ContextAccount]),
	}
	p.Terms, p.Refused = d.cfg.Terms(p.Namespace, attributes)
	if p.Refused == nil && d.cfg.Cut != nil {
		p.Cut = d.cfg.Cut(p.Namespace, attributes)
	}
	// A volume that is known is published again whatever the policy is by now, and compared with this.
	attach, refused := policy.Attach(attributes, t.ReadOnly)
	p.Attach = attach
	if p.Refused == nil {
		p.Refused = refused
	}
	return p, nil
}

// unpublication validates an unpublish.
func (d *Driver) unpublication(req *csi.NodeUnpublishVolumeRequest) (volume.ID, string, error) {
	id, err := volume.ParseID("volume_id", req.GetVolumeId())
	if err != nil {
		return "", "", err
	}
	target, err := d.target(req.GetTargetPath())
	return id, target, err
}

// statsOf validates a request for stats. The path is only compared with the published targets: any
// other path is not found.
func statsOf(req *csi.NodeGetVolumeStatsRequest) (volume.ID, string, error) {
	id, err := volume.ParseID("volume_id", req.GetVolumeId())
	if err != nil {
		return "", "", err
	}
	if req.GetVolumePath() == "" {
		return "", "", volume.Invalid("volume_path", "is missing")
	}
	return id, filepath.Clean(req.GetVolumePath()), nil
}

// target accepts a path strictly below the kubelet's pods directory.
func (d *Driver) target(path string) (string, error) {
	const field = "target_path"
	clean, err := edge.Path(field, path)
	if err != nil {
		return "", err
	}
	if !strings.HasPrefix(clean, d.podsDir+"/") {
		return "", volume.Invalid(field, "is not below the kubelet's pods directory "+d.podsDir)
	}
	return clean, nil
}

// capability turns a volume capability into a target without a path.
func capability(c *csi.VolumeCapability) (volume.Target, error) {
	const field = "volume_capability"
	switch {
	case c == nil:
		return volume.Target{}, volume.Invalid(field, "is missing")
	case c.GetBlock() != nil:
		return volume.Target{}, volume.Invalid(field+".block", "is not supported: volumes are directories")
	case c.GetMount() == nil:
		return volume.Target{}, volume.Invalid(field+".mount", "is missing")
	case c.GetMount().GetVolumeMountGroup() != "":
		return volume.Target{}, volume.Invalid(field+".mount.volume_mount_group", "is not supported")
	}
	var t volume.Target
	switch mode := c.GetAccessMode().GetMode(); mode {
	case csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER:
	case csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER:
		t.MultiWriter = true
	case csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY:
		t.ReadOnly = true
	case csi.VolumeCapability_AccessMode_UNKNOWN:
		return volume.Target{}, volume.Invalid(field+".access_mode", "is missing")
	default:
		return volume.Target{}, volume.Invalid(field+".access_mode", fmt.Sprintf("%s is not supported: a volume lives on one node", mode))
	}
	err := mountFlags(&t, c.GetMount().GetMountFlags())
	return t, err
}

// mountFlags adds the mount flags to t. The file system type is ignored: a directory is on the file
// system it is on.
func mountFlags(t *volume.Target, flags []string) error {
	for _, flag := range flags {
		switch {
		case flag == "ro":
			t.ReadOnly = true
		case flag == "rw":
		case mount.KnownFlag(flag):
			t.Flags = append(t.Flags, flag)
		default:
			return volume.Invalid("volume_capability.mount.mount_flags", fmt.Sprintf("contains %q, which a bind mount does not support", flag))
		}
	}
	slices.Sort(t.Flags)
	t.Flags = slices.Compact(t.Flags)
	return nil
}

func contextField(key string) string { return fmt.Sprintf("volume_context[%q]", key) }
