// Package dataplane is what is behind the REST API of a fake array: the data, and how clients reach it.
//
// [Plane] is what the fake asks for. A fake without one answers requests and has no data. [Kernel] serves
// real data from one machine, with what its kernel has: volumes are files on a file system with reflinks;
// block volumes are LUNs of an iSCSI target (LIO, through configfs), file systems are exported by nfsd.
// It is made for a virtual machine that is thrown away: it changes the machine's mounts, loop devices,
// exports, targets and addresses, and leaves them when its program ends, so that clients go on.
//
// # How it is like an array
//
//   - The array has one iSCSI target. Each initiator that has a server record may log in, with CHAP, and
//     sees the LUNs that are mapped to it, and no others. The serial number of a device is the volume's ID, or a number.
//   - Unmapping or unexporting cuts a client off at once, whatever it does: I/O on the device fails, NFS
//     says that the file handle is stale.
//   - A volume that is attached read-only cannot be written from there.
//   - Volumes grow, and snapshots and clones are made, while clients write. A snapshot of a file system is
//     one without a journal to replay.
//   - The addresses at which the array answers are added to the loopback device and taken away. An array
//     that is away for the network loses packets in silence; one that is down breaks its connections.
//
// # What it needs
//
// Root; the kernel's modules loop, nfsd, target_core_iblock and iscsi_target_mod; configfs; the programs
// blockdev, cp, exportfs, fsfreeze, ip, losetup, mke2fs, modprobe, mount, resize2fs, rpc.mountd, rpc.nfsd and
// umount; for its directory an XFS or Btrfs, on which cp can make reflinks. NFS is version 4 only. One
// nfsd serves all fake arrays of a machine.
package dataplane
