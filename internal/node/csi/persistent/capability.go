package persistent

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
)

const (
	capabilityField = "volume_capability"
	contextField    = "publish_context"
	// longestOption bounds a mount option, and all of them together: the kernel takes one page.
	longestOption, longestOptions = 256, 2048
	// longestValue bounds a value of the publish context: that of a path.
	longestValue = 4095
)

// fileSystems are those that an iSCSI volume can get.
var fileSystems = []string{pools.DefaultFSType, "xfs"}

// use is what a capability wants of a volume.
type use struct {
	block, readOnly bool
	// oneTarget: one pod of the node at a time; nodes: pods on several nodes; writers: several of those write.
	oneTarget, nodes, writers bool
	fsType                    string
	options                   []string
}

// useOf reads a capability. The error names the field that is not acceptable for any volume.
func useOf(c *csi.VolumeCapability) (u use, err error) {
	switch {
	case c == nil:
		return u, volume.Invalid(capabilityField, "is missing")
	case c.GetBlock() != nil:
		u.block = true
	case c.GetMount() == nil:
		return u, volume.Invalid(capabilityField, "has neither block nor mount")
	case c.GetMount().GetVolumeMountGroup() != "":
		return u, volume.Invalid(capabilityField+".mount.volume_mount_group", "is not supported")
	default:
		u.fsType = c.GetMount().GetFsType()
	}
	switch mode := c.GetAccessMode().GetMode(); mode {
	case csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER:
		u.oneTarget = true
	case csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER:
	case csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY:
		u.oneTarget, u.readOnly = true, true
	case csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY:
		u.readOnly, u.nodes = true, true
	case csi.VolumeCapability_AccessMode_MULTI_NODE_SINGLE_WRITER, csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER:
		u.writers, u.nodes = true, true
	case csi.VolumeCapability_AccessMode_UNKNOWN:
		return use{}, volume.Invalid(capabilityField+".access_mode", "is missing")
	default:
		return use{}, volume.Invalid(capabilityField+".access_mode", fmt.Sprintf("%s is not known", mode))
	}
	if err := u.read(c.GetMount().GetMountFlags()); err != nil {
		return use{}, err
	}
	return u, nil
}

// read takes the mount options. The kernel and the file systems separate them by commas: one with a comma
// would be two, of which only the whole was allowed.
func (u *use) read(options []string) error {
	const field = capabilityField + ".mount.mount_flags"
	length := 0
	for _, option := range options {
		length += len(option) + 1
		switch {
		case option == "":
			return volume.Invalid(field, "contains an empty option")
		case len(option) > longestOption || length > longestOptions:
			return volume.Invalid(field, fmt.Sprintf("is longer than %d bytes, or one option than %d", longestOptions, longestOption))
		case strings.ContainsRune(option, ','):
			return volume.Invalid(field, fmt.Sprintf("contains %q: give each option on its own, without commas", option))
		case strings.ContainsFunc(option, odd):
			return volume.Invalid(field, "contains an option with a control character")
		case option == "ro":
			u.readOnly = true
		case option == "rw":
		default:
			u.options = append(u.options, option)
		}
	}
	return nil
}

// odd reports whether no name, address or option contains r.
func odd(r rune) bool { return unicode.IsControl(r) || r == unicode.ReplacementChar }

// attachment reads a publish context. Its values come from the VolumeAttachment; they reach files and
// commands, so none may hold more than one line.
func (d *Driver) attachment(id string, context map[string]string) (pools.Attachment, error) {
	if len(context) == 0 {
		return pools.Attachment{}, volume.Invalid(contextField, "is missing: the volume is not attached by this driver's controller")
	}
	for key, value := range context {
		if len(value) > longestValue || strings.ContainsFunc(value, odd) {
			return pools.Attachment{}, volume.Invalid(contextField,
				fmt.Sprintf("has a value of %.40q that is longer than %d bytes or has a control character", key, longestValue))
		}
	}
	a, err := pools.ParsePublishContext(context)
	if err != nil {
		return pools.Attachment{}, volume.Invalid(contextField, strings.TrimPrefix(err.Error(), contextField+": "))
	}
	a.Volume, a.Node, a.Export = id, d.cfg.NodeID, pools.CleanExport(a.Export)
	return a, nil
}

// fits returns which file system an iSCSI volume gets, or why the volume cannot be used in this way. The
// capability's file system comes before the attachment's: the one of a PersistentVolume that a person has
// made is what he knows of the volume.
func (u use) fits(a pools.Attachment) (fsType string, err error) {
	wantsNFS := u.fsType == "nfs" || u.fsType == "nfs4"
	known := u.fsType == "" || wantsNFS || slices.Contains(fileSystems, u.fsType)
	switch {
	case a.Protocol == pools.NFS && u.block:
		return "", volume.Invalid(capabilityField+".block", "is not possible: the volume is reached over NFS")
	case !known:
		return "", volume.Invalid(capabilityField+".mount.fs_type",
			fmt.Sprintf("is %.40q: give nfs, or %s or %s for iSCSI", u.fsType, fileSystems[0], fileSystems[1]))
	case a.Protocol == pools.NFS:
		return "", nil // the array's file system, whatever the claim's class says
	case u.block && a.FSType != "":
		return "", volume.Invalid(capabilityField+".block",
			fmt.Sprintf("is not possible: the volume is attached with the file system %.40q", a.FSType))
	case u.block:
		return "", nil
	case wantsNFS:
		return "", volume.Invalid(capabilityField+".mount.fs_type", "is "+u.fsType+", and the volume is reached over iSCSI")
	case a.FSType == "":
		return "", volume.Invalid(capabilityField+".mount", "is not possible: the volume is attached as a block device")
	case !slices.Contains(fileSystems, a.FSType):
		return "", volume.Invalid(contextField, fmt.Sprintf("has the file system %.40q, which is neither %s nor %s",
			a.FSType, fileSystems[0], fileSystems[1]))
	case u.writers:
		return "", volume.Invalid(capabilityField+".access_mode", "lets pods on several nodes write to a file system on iSCSI, "+
			"which would destroy it: use a volume over NFS, or a block volume")
	case u.fsType != "":
		return u.fsType, nil
	}
	return a.FSType, nil
}
