// Package attach holds the words for volumes of arrays on a node, and reads the mount table for them.
// The packages below it attach and detach: nfs mounts exports, iscsi finds the disks of an iSCSI target,
// disk makes and mounts file systems on such disks, and staged keeps a small record of each volume.
//
// Nothing here asks a file system or a device, so nothing here waits for an array.
package attach
