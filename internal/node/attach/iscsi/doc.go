// Package iscsi has the iSCSI sessions and disks of a node. It logs in to an array's target, makes
// one LUN a disk, says which disk that is, lets it grow, removes it, and logs out.
//
// # Who does what
//
// The host's open-iscsi keeps the sessions: its daemon iscsid logs in, and connects again after a
// failure. [Initiator] runs the host's iscsiadm in the host's root directory, writes open-iscsi's
// records, and reads and writes sysfs. iscsiadm talks to iscsid by an abstract socket, so the caller
// has to be in the host's network namespace. Sessions and disks outlive the caller; the next process
// finds them by [Initiator.Sessions].
//
// # What is ours
//
// Everything that an Initiator makes bears the name of its interface ([Config].Interface): sessions,
// and open-iscsi's records. It never touches what bears another name, not even a session to the same
// target. The record of the interface names no transport: so a discovery by the host's administrator
// does not choose it. Initiator names are ours too; nothing reads /etc/iscsi/initiatorname.iscsi,
// whose name some fleets have on all nodes.
//
// # Secrets
//
// iscsiadm takes a CHAP secret as an argument only, which all processes of the node can read. So the
// Initiator writes the target's record itself, whole, in one step, as a file that only root can read.
// iscsiadm reads it there, and passes it to iscsid. No error and no log line has a secret.
//
// # Disks
//
// sysfs says which disk a LUN of a session is; links that udev makes are not needed. A LUN's number identifies
// nothing: an array gives the number of a detached volume to the next one. The kernel notices that only
// sometimes, so [Initiator.Scan] and [Initiator.Rescan] ask the disk itself. Its serial number (VPD page 0x80) may be
// the array's ID of the volume. Many arrays give it another one; then the WWID (page 0x83) tells the disk from all
// others, and the caller has to know which volume it is: see [Wanted]. A disk that is not wanted is attach.ErrNotOurs; while
// anything uses it, it is left as it is. A LUN above 255 is looked for in the flat format of SCSI first, then as the
// plain number, which some arrays want.
//
// # Calls that hang
//
// While a session is down the kernel holds its I/O back, for [ReplacementTimeout].
// [Initiator.Scan], [Initiator.Rescan] and [Initiator.Delete] may hang for as long, whatever their
// context says: no signal ends a write to sysfs. A command to iscsid is not ended either.
// [Initiator.Session], [Initiator.Sessions], [Initiator.Devices] and [Initiator.DeviceByNumber] ask
// the kernel alone, and return at once.
//
// # Portals that move
//
// open-iscsi cannot move a session. iscsid keeps the address of the first login in its memory, and the
// kernel keeps it beside the session, where nothing can write it. A restart of iscsid takes it from
// the kernel; a record with another address does not change it. The same holds for user and secret of
// CHAP. What was tried, with open-iscsi 2.1.8:
//
//   - The array answers at the old address again, in time: I/O goes on.
//   - The array answers at another address: the session stays down, and its I/O fails after
//     [ReplacementTimeout]. Its disks have to be unmounted; the pods have to end.
//   - A login at the other address makes a second session with disks of its own. I/O of the first does
//     not continue there: a mounted file system cannot change its disk.
//
// So [Initiator.Login] at another address leaves a session that is down as long as anything uses its
// disks, and logs in beside it. [Initiator.Scan] refuses a volume that is still in use as a disk of the
// session that is down: if that came back, two disks would write to one volume.
//
// A session that is down can be ended at once, with one exception: after iscsid was restarted meanwhile, it
// refuses (status 32) until the array answers at the address, or the node reboots.
package iscsi
