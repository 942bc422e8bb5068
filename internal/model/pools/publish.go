package pools

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Keys of the publish context, in which a node learns how to reach a volume that is attached to it.
// Kubernetes keeps it in the VolumeAttachment, which many may read: it holds no secrets.
const (
	// KeyProtocol has the Protocol.
	KeyProtocol = "protocol"
	// KeyExport is where an NFS client mounts the volume from.
	KeyExport = "export"
	// KeyTarget, KeyPortal and KeyLUN are where an iSCSI initiator finds it; KeySerial is the array's ID of the
	// volume, KeyWWID what its disk is known by, where that is not the ID.
	KeyTarget = "target"
	KeyPortal = "portal"
	KeyLUN    = "lun"
	KeySerial = "serial"
	KeyWWID   = "wwid"
	// KeyCHAPSecret names the Secret that the login needs.
	KeyCHAPSecret = "chapSecret"
	// KeyFSType is the file system on an iSCSI volume that is not used as a block device.
	KeyFSType = "fsType"
	// KeyReadOnly is "true" where the volume is attached read-only.
	KeyReadOnly = "readOnly"
)

// PublishContext returns what a node learns of an attachment. A volume that is used as a block device
// has no file system.
func (a Attachment) PublishContext(block bool) map[string]string {
	c := map[string]string{KeyProtocol: string(a.Protocol)}
	if a.ReadOnly {
		c[KeyReadOnly] = "true"
	}
	if a.Protocol == NFS {
		c[KeyExport] = a.Export
		return c
	}
	c[KeyTarget], c[KeyPortal] = a.Target, a.Portal
	c[KeyLUN], c[KeySerial] = strconv.Itoa(a.LUN), a.Serial
	if a.WWID != "" {
		c[KeyWWID] = a.WWID
	}
	if a.CHAPSecret != "" {
		c[KeyCHAPSecret] = a.CHAPSecret
	}
	if !block {
		c[KeyFSType] = a.FSType
		if a.FSType == "" {
			c[KeyFSType] = DefaultFSType
		}
	}
	return c
}

// ParsePublishContext returns the attachment that a publish context tells of. The error names the key that
// is not acceptable.
func ParsePublishContext(c map[string]string) (a Attachment, err error) {
	a = Attachment{
		Protocol: Protocol(c[KeyProtocol]), ReadOnly: c[KeyReadOnly] == "true", Export: c[KeyExport], Target: c[KeyTarget],
		Portal: c[KeyPortal], Serial: c[KeySerial], WWID: c[KeyWWID], CHAPSecret: c[KeyCHAPSecret], FSType: c[KeyFSType],
	}
	needed := []string{KeyTarget, KeyPortal, KeySerial, KeyLUN}
	switch a.Protocol {
	case NFS:
		needed = []string{KeyExport}
	case ISCSI:
	default:
		return a, fmt.Errorf("publish_context: %s %.40q is neither %s nor %s", KeyProtocol, a.Protocol, NFS, ISCSI)
	}
	for _, key := range needed {
		if c[key] == "" {
			return a, fmt.Errorf("publish_context: %s is missing", key)
		}
	}
	if a.Protocol == ISCSI {
		if a.LUN, err = strconv.Atoi(c[KeyLUN]); err != nil || a.LUN < 0 || a.LUN > maxLUN {
			return a, fmt.Errorf("publish_context: %s %.40q is no number from 0 to %d", KeyLUN, c[KeyLUN], maxLUN)
		}
	}
	return a, nil
}

// CleanExport writes the path of an export without slashes and dots that make no difference, as the mount table
// does: by that the volume is found again. One that leads upwards, or is no export, is refused when it is mounted.
func CleanExport(export string) string {
	host, name, found := strings.Cut(export, ":/")
	if !found || slices.Contains(strings.Split(name, "/"), "..") {
		return export
	}
	return host + ":" + path.Clean("/"+name)
}

// maxLUN is the largest LUN that Linux knows in the format that arrays use.
const maxLUN = 16383

// DefaultFSType is the file system that an iSCSI volume gets when none is named.
const DefaultFSType = "ext4"
