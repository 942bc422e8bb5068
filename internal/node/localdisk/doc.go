// Package localdisk keeps the volumes of one pool in a directory of a node: [Pool] is the directory that was opened.
// internal/model/local says what is where in it.
//
// # Which directory is a pool
//
// [Open] makes a pool only of an empty directory, or where there is none: it writes pool.json with a new UUID before
// anything else. Any other directory without that file is refused and stays as it is. A disk that is not mounted
// looks like an empty directory, too. So the caller says which UUID was at the path before: then nothing is made. It
// also says on which file systems no pool is made, such as the root's.
// One process at a time has a pool open.
//
// pool.json has a key as well, which no name and no label tells. The controller keeps its hash: another node gets the pool
// only with the disk. A pool of an earlier version gets its key when it is opened.
//
// # What keeps a volume
//
// A project quota limits the bytes and the files of a directory of XFS or ext4. A process without privileges can give its own files another
// project, unless it runs in a user namespace: this limit is none against a hostile pod. Such a pool has no
// snapshots: a copy of a directory in which a pod writes would have files of different moments.
//
// An image is a file, all of whose blocks are set aside when it is made, and which a loop device makes a disk of. The
// device discards nothing, so that the file keeps them. A copy shares the blocks of its origin where the file system
// of the pool can (FICLONE); those that are written to need room then. While pods use it, all that does not change is
// shared first; the file system is frozen for the rest alone, and for no longer than two seconds. There is room while no
// more is promised than the disk has, and nothing else is on it. The device's blocks have 4096 bytes, whatever the disk's have: the
// volume's file system fits on any disk.
//
// On btrfs images are not copied. What is written to a part of an extent that is shared goes elsewhere, and the extent
// stays whole as long as one block of it is in use, also when the copy is gone: an image took nearly twice its size, so
// that another volume found no room for what it was promised. Pools of earlier versions that have copies go on with them,
// and their limit is not hard.
//
// A subvolume of btrfs counts in a quota group of its own, whose number is that of a project. With simple quotas
// (Linux 6.7), which a new pool turns on where btrfs has none, a subvolume that a pod makes in its volume counts in
// the same group, unless the pod asks the kernel for another list of groups: the limit is not hard. With the older kind
// of quotas any such subvolume would leave the group: such a disk gets images. What a copy has in common with its origin
// counts for the origin alone. A volume with subvolumes in it is not copied, because btrfs would leave those out.
//
// Any user may write to the top of a new directory or subvolume. That of a file system on an image is root's, as on
// the disks of arrays: a pod that is not root sets fsGroup.
//
// # Project IDs
//
// All pools of a process share one [Projects], and of those on the same file system each gets other IDs. They are of
// a range of their own ([quota.LocalRange]): inline volumes on the same file system have other ones. An ID is in the
// volume's record before a file has it. A volume that is made again after a crash gets another ID.
//
// # A full disk
//
// Something else than the volumes may take all bytes or all inodes of a disk, or pods that evade their limits. Then no
// volume is made or grown, and each can be retained and deleted. Its record is written to the spare file, which becomes
// the record, while the former record becomes the spare file: that takes no inode, nor a block where files are overwritten in
// place. On btrfs, which does not, it takes room from the file .reserve, which has 4 MiB for that.
//
// A project has as many inodes as its volume's share of the disk, so that no pod takes those of others. Volumes of
// earlier versions have no such limit, and get none: they may have more files already.
//
// # Reading
//
// A volume that is staged nowhere is shown to readers ([Pool.Show]). A directory is opened. An image gets a loop device
// that refuses writes, and a mount that is attached nowhere (fsmount(2)): no mount table has it and no
// path leads to it, so no pod sees it, and nothing propagates. Mount and device go with the last file that a reader has
// open, and with the process if that is killed: a start has nothing to undo. While the device is there the volume is in
// use, whatever the mount table says.
//
// An image that was not unmounted in order is refused. The kernel could show it without what is in its journal: files
// as they were before, as if they were the last. A block volume is refused, too: it may hold anything, and no node
// should take that for a file system.
//
// # Crashes
//
// Every step may be the last one before a crash, and every call may be repeated. What an unfinished [Pool.Make] has
// left goes to the trash when it is repeated, so half a volume is never taken for a whole one. A loop device of a file
// system goes by itself when nothing has it open, so a crash leaves none; one of a block device stays until
// [Pool.Release], or [Locations.Unstage]. A file system that was frozen for a copy when the daemon ended is thawed by the next
// Open, also if it was unstaged meanwhile: the kernel keeps it, with its loop device, until then.
//
// A volume that is in use is never touched: no image is moved or removed that a loop device has, and no loop device
// is taken away that is mounted, bound or open.
package localdisk
