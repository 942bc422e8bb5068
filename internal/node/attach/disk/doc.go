// Package disk makes file systems on the disks of arrays, checks, mounts, grows and measures them, and gives
// directories and devices to pods.
//
// # What is never destroyed
//
// [Tools.Format] writes only to a device that is proven to be empty: its first and last 64 KiB are zeros, and
// blkid of the host finds nothing. A device with anything else on it is [attach.ErrNotOurs] and stays as it is.
//
// A crash may end mkfs in the middle. Before it runs, the caller notes durably that it is about to; when it has
// ended well, that it is over. Where such a note is found, and only there, the caller calls [Tools.Reformat]. It
// makes a file system anew that cannot have been used: the device is empty, or has no file system that blkid
// knows, or an XFS that says that it is being made, which the kernel never mounts, or an ext4 that was never
// mounted. Any other file system of the right type is complete, and is kept. mkfs writes these marks last.
//
// # What waits for the array
//
// A disk whose iSCSI session is down answers no read and no write until the session is back or has been given up.
// Until then [Tools.Content], [Tools.Format], [Tools.Reformat], [Tools.Check], [Tools.Mount], [Tools.Grow] and
// [Tools.Unmount] wait, also beyond the end of their context: the kernel cannot interrupt them.
//
// Mounts of an NFS server wait for it as [github.com/katbox/katbox/internal/node/attach/nfs] says: [Tools.Stats], and
// [Tools.Unmount] of the last one.
//
// An unmount that waits has left the mount table already, while the kernel still writes and holds the device. The
// caller does not take a path where nothing is mounted for the end of such an unmount: it waits for the call, and before
// it takes the device away it makes sure that nothing holds it.
//
// [Tools.Bind], [Tools.BindDevice], [Tools.DeviceAt], [Tools.MakeDir] and [Tools.Remove], and all of them for a device's
// node, wait for nothing but the node's own disk.
package disk
