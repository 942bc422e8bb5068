package csi

import (
	"fmt"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
)

const capabilitiesField = "volume_capabilities"

// The file systems that an iSCSI volume can get; the first one is the default. An NFS volume has the
// array's.
var fileSystems = []string{pools.DefaultFSType, "xfs"}

// use is what is wanted of a volume by all capabilities of a request together.
type use struct {
	block bool
	// nodes: it may be attached to several nodes at the same time; writers: one of them may write then.
	nodes, writers bool
	readOnly       bool
	fsType         string
}

// usesOf reads capabilities. The error names the field that is not acceptable for any volume.
func usesOf(field string, all ...*csi.VolumeCapability) (u use, err error) {
	if len(all) == 0 {
		return u, volume.Invalid(field, "is missing")
	}
	for i, c := range all {
		one, err := useOf(field, c)
		if err != nil {
			return u, err
		}
		if i == 0 {
			u = one
			continue
		}
		if one.block != u.block {
			return u, volume.Invalid(field, "wants both a block device and a file system")
		}
		if one.fsType != "" && u.fsType != "" && one.fsType != u.fsType {
			return u, volume.Invalid(field, fmt.Sprintf("wants two file systems, %s and %s", u.fsType, one.fsType))
		}
		u.fsType = max(u.fsType, one.fsType)
		u.nodes, u.writers, u.readOnly = u.nodes || one.nodes, u.writers || one.writers, u.readOnly && one.readOnly
	}
	return u, nil
}

func useOf(field string, c *csi.VolumeCapability) (u use, err error) {
	switch {
	case c == nil:
		return u, volume.Invalid(field, "is missing")
	case c.GetBlock() != nil:
		u.block = true
	case c.GetMount() == nil:
		return u, volume.Invalid(field, "has neither block nor mount")
	case c.GetMount().GetVolumeMountGroup() != "":
		return u, volume.Invalid(field+".mount.volume_mount_group", "is not supported")
	default:
		u.fsType = c.GetMount().GetFsType()
	}
	switch mode := c.GetAccessMode().GetMode(); mode {
	case csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER,
		csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER,
		csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER:
	case csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY:
		u.readOnly = true
	case csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY:
		u.nodes, u.readOnly = true, true
	case csi.VolumeCapability_AccessMode_MULTI_NODE_SINGLE_WRITER,
		csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER:
		u.nodes, u.writers = true, true
	case csi.VolumeCapability_AccessMode_UNKNOWN:
		return u, volume.Invalid(field+".access_mode", "is missing")
	default:
		return u, volume.Invalid(field+".access_mode", fmt.Sprintf("%s is not known", mode))
	}
	return u, nil
}

// protocolOf says by which protocol a volume is reached, where that follows from what is asked for;
// empty where the class decides. It returns the file system that the volume gets.
func protocolOf(field string, asked pools.Protocol, u use) (p pools.Protocol, fsType string, err error) {
	wantsNFS := u.fsType == "nfs" || u.fsType == "nfs4"
	wantsDisk := slices.Contains(fileSystems, u.fsType)
	switch {
	case u.block && asked == pools.NFS:
		return "", "", volume.Invalid(parameter(keyProtocol), "is nfs, by which no volume can be a block device")
	case u.block:
		return pools.ISCSI, "", nil
	case u.fsType != "" && !wantsNFS && !wantsDisk:
		return "", "", volume.Invalid(field, fmt.Sprintf("wants the file system %.100q: give nfs, or %s or %s for iSCSI",
			u.fsType, fileSystems[0], fileSystems[1]))
	case wantsNFS && asked == pools.ISCSI:
		return "", "", volume.Invalid(field, fmt.Sprintf("wants the file system %s, and the protocol is iscsi", u.fsType))
	case wantsNFS:
		return pools.NFS, "", nil
	case asked == pools.ISCSI && u.writers:
		return "", "", sharedFileSystem(field)
	case asked == pools.NFS:
		return pools.NFS, "", nil // the array's file system, whatever the claim's class says
	}
	return asked, u.fsType, nil
}

func sharedFileSystem(field string) error {
	return volume.Invalid(field, "wants pods on several nodes to write to a file system on iSCSI, which would destroy it: "+
		"use the protocol nfs, or a block volume")
}

// fits returns why a volume cannot be used in this way.
func (u use) fits(field string, v pools.Volume) error {
	if v.Protocol == pools.Local {
		if _, err := onNode(field, u); err != nil {
			return err
		}
	}
	wantsNFS := u.fsType == "nfs" || u.fsType == "nfs4"
	switch {
	case u.block && !v.Block:
		return volume.Invalid(field, "wants a block device, and volume "+v.ID+" has a file system")
	case !u.block && v.Block:
		return volume.Invalid(field, "wants a file system, and volume "+v.ID+" is a block device")
	case !u.block && v.Protocol == pools.ISCSI && u.writers:
		return sharedFileSystem(field)
	case wantsNFS && v.Protocol == pools.ISCSI:
		return volume.Invalid(field, fmt.Sprintf("wants the file system %s, and volume %s is reached over iSCSI", u.fsType, v.ID))
	}
	return nil
}
