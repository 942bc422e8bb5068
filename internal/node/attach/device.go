package attach

import (
	"cmp"
	"strings"
)

// Device is a disk of an array as the node sees it.
type Device struct {
	// Name is the kernel's, such as sda; Path is that of its node, such as /dev/sda.
	Name, Path string
	// Number is the device's number, as in the mount table and in Rdev of stat(2). A later disk may get
	// the number and the name of one that is gone.
	Number uint64
	// Host is the number of the SCSI host, which is one for each iSCSI session.
	Host, LUN int
	// Target is the iSCSI name of the target.
	Target string
	Identity
}

// Identity is what a disk says of itself.
type Identity struct {
	// Serial is its serial number (VPD page 0x80). An array need not have one, and it may be anything.
	Serial string
	// WWID tells it from all other disks (VPD page 0x83), such as naa.60014051... or t10.SCST_BIO 2a8c-x. Every array
	// has to answer that. It says nothing about which volume the disk is.
	WWID string
}

// Proves reports whether the disk says that it is the volume with an array's ID: as its serial number, or at the end of
// its WWID, where some targets have their own name for the disk.
func (i Identity) Proves(id string) bool {
	return id != "" && (i.Serial == id || strings.HasSuffix(i.WWID, "-"+id))
}

// Is reports whether the disk is the one that is known by a serial number or a WWID.
func (i Identity) Is(known string) bool { return known != "" && (i.Serial == known || i.WWID == known) }

// String is for people.
func (i Identity) String() string { return cmp.Or(i.Serial, i.WWID, "a disk without a name") }
