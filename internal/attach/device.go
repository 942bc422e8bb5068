package attach

// Device is a disk of an array as the node sees it.
type Device struct {
	// Name is the kernel's, such as sda; Path is that of its node, such as /dev/sda.
	Name, Path string
	// Number is the device's number, as in the mount table and in Rdev of stat(2). A later disk may get
	// the number and the name of one that is gone.
	Number uint64
	// Host is the number of the SCSI host, which is one for each iSCSI session.
	Host, LUN int
	// Target is the iSCSI name of the target; Serial is the disk's serial number, which is the array's
	// for the volume.
	Target, Serial string
}
