package persistent

import (
	"fmt"
	"slices"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
)

const volumeContextField = "volume_context"

// othersKeys begin the keys of a volume context that Kubernetes and its sidecars add.
var othersKeys = []string{"storage.kubernetes.io/", "csi.storage.k8s.io/"}

// localStaging validates what is special about a stage of a volume on the node's own disks. There is nothing to be
// attached, and no other node can use it.
func localStaging(req *csi.NodeStageVolumeRequest, path string, u use) (s pools.Staging, err error) {
	if len(req.GetPublishContext()) > 0 {
		return s, volume.Invalid(contextField, "is not empty: volumes on nodes are not attached")
	}
	for key := range req.GetVolumeContext() {
		others := slices.ContainsFunc(othersKeys, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
		if key != pools.PoolContext && !others {
			return s, volume.Invalid(volumeContextField, fmt.Sprintf("has the key %.80q, which is not known", key))
		}
	}
	pool := req.GetVolumeContext()[pools.PoolContext]
	switch {
	case pool == "":
		return s, volume.Invalid(volumeContextField, pools.PoolContext+" is missing: the volume was not made by this driver's controller")
	case !pools.IsUUID(pool):
		return s, volume.Invalid(volumeContextField, fmt.Sprintf("%s %.80q is no UUID of a pool", pools.PoolContext, pool))
	}
	if err := u.fitsNode(); err != nil {
		return s, err
	}
	return pools.Staging{
		Volume: req.GetVolumeId(), Path: path, Block: u.block, FSType: u.fsType, ReadOnly: u.readOnly, Options: u.options, Pool: pool,
	}, nil
}

// fitsNode returns why no volume on a node can be used in this way.
func (u use) fitsNode() error {
	switch {
	case u.nodes:
		return volume.Invalid(capabilityField+".access_mode", "is for pods on several nodes: the volume is on one node's disk")
	case u.block, u.fsType == "", slices.Contains(fileSystems, u.fsType):
		return nil
	}
	return volume.Invalid(capabilityField+".mount.fs_type",
		fmt.Sprintf("is %.40q: give %s, or nothing", u.fsType, strings.Join(fileSystems, " or ")))
}
