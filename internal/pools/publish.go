package pools

// Keys of the publish context, in which a node learns how to reach a volume that is attached to it.
// Kubernetes keeps it in the VolumeAttachment, which many may read: it holds no secrets.
const (
	// KeyProtocol has the Protocol.
	KeyProtocol = "protocol"
	// KeyExport is where an NFS client mounts the volume from.
	KeyExport = "export"
	// KeyTarget, KeyPortal and KeyLUN are where an iSCSI initiator finds it; KeySerial is the serial
	// number that the device has there.
	KeyTarget = "target"
	KeyPortal = "portal"
	KeyLUN    = "lun"
	KeySerial = "serial"
	// KeyCHAPSecret names the Secret that the login needs.
	KeyCHAPSecret = "chapSecret"
	// KeyFSType is the file system on an iSCSI volume that is not used as a block device.
	KeyFSType = "fsType"
	// KeyReadOnly is "true" where the volume is attached read-only.
	KeyReadOnly = "readOnly"
)
