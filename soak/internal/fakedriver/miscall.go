package fakedriver

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	podUID       = "csi.storage.k8s.io/pod.uid"
	podNamespace = "csi.storage.k8s.io/pod.namespace"
	podName      = "csi.storage.k8s.io/pod.name"
	ephemeral    = "csi.storage.k8s.io/ephemeral"
)

// invalid refuses a field of a request, by its name in the specification.
func (r *run) invalid(field, why string) error {
	if r.cfg.Bug == AnswersVaguely {
		return status.Error(codes.Internal, "something went wrong")
	}
	return status.Errorf(codes.InvalidArgument, "%s %s", field, why)
}

// first is the first of the errors, so that its code is the answer's.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// checkElement refuses what is not one element of a path, and names that the
// driver keeps for itself.
func (r *run) checkElement(field, value string) error {
	if value == "" || strings.HasPrefix(value, ".") || strings.ContainsAny(value, "/\x00") || len(value) > unix.NAME_MAX {
		return r.invalid(field, "is not one plain element of a path")
	}
	return nil
}

// checkID refuses bad volume IDs. A driver that takes any ID does so where
// nothing comes of it that would leak, nor leads further than beside the working
// directory.
func (r *run) checkID(id string, makes bool) error {
	if !makes && r.leads(id) {
		return nil
	}
	if r.cfg.Bug == TakesAnyID && !makes && id != "" && filepath.IsLocal(filepath.Join("work", "pod", id)) {
		return nil
	}
	return r.checkElement("volume_id", id)
}

// checkTarget refuses targets that are not below the kubelet's pods.
func (r *run) checkTarget(target string) error {
	below := strings.HasPrefix(target, filepath.Join(r.cfg.Kubelet, "pods")+"/")
	if !below || target != filepath.Clean(target) || strings.Contains(target, "\x00") || len(target) >= unix.PathMax {
		return r.invalid("target_path", "is no clean path below the kubelet's pods directory")
	}
	return nil
}

// checkCapability refuses what is not a plain directory on one node.
func (r *run) checkCapability(c *csi.VolumeCapability) error {
	const field = "volume_capability"
	mount := c.GetMount()
	switch {
	case c == nil:
		return r.invalid(field, "is missing")
	case mount == nil:
		return r.invalid(field, "has an access type other than mount")
	case mount.GetFsType() != "":
		return r.invalid(field+".mount.fs_type", "is not supported")
	case mount.GetVolumeMountGroup() != "":
		return r.invalid(field+".mount.volume_mount_group", "is not supported")
	case len(mount.GetMountFlags()) > 0:
		return r.invalid(field+".mount.mount_flags", "are not supported")
	case !slices.Contains([]csi.VolumeCapability_AccessMode_Mode{
		csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER,
		csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY,
		csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER,
		csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER,
	}, c.GetAccessMode().GetMode()):
		return r.invalid(field+".access_mode", "is none of a single node")
	}
	return nil
}

func (r *run) checkPublish(q *csi.NodePublishVolumeRequest) error {
	values := q.GetVolumeContext()
	if values[ephemeral] != "true" {
		return r.invalid("volume_context "+ephemeral, "is not true")
	}
	return first(
		r.checkCapability(q.GetVolumeCapability()),
		r.checkID(q.GetVolumeId(), true),
		r.checkElement("volume_context "+podUID, values[podUID]),
		r.checkTarget(q.GetTargetPath()),
		r.checkAttributes(values),
	)
}

func (r *run) checkUnpublish(q *csi.NodeUnpublishVolumeRequest) error {
	return first(r.checkID(q.GetVolumeId(), false), r.checkTarget(q.GetTargetPath()))
}

// checkStats knows no statistics of any volume.
func (r *run) checkStats(q *csi.NodeGetVolumeStatsRequest) error {
	if err := r.checkID(q.GetVolumeId(), false); err != nil {
		return err
	}
	if q.GetVolumePath() == "" {
		return r.invalid("volume_path", "is missing")
	}
	return status.Error(codes.NotFound, "there are no statistics of such a volume")
}
