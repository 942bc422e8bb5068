// Package quota limits and counts what each volume takes, by project quotas of the file system that
// the volumes are on.
//
// A project is a number that files and directories carry. A new file gets the number of the
// directory that it is made in, so one call for a volume's empty top directory marks all that will
// be in it. The file system counts the bytes and inodes of each project, and refuses those above
// its limit. XFS and ext4 do so if they are mounted for it; [Detect] says what a file system does.
//
// [Projects] gives each volume an ID of its own, any one of a range that nothing else uses: a program
// that tries quotas with the next ID meets no neighbour, and a pod cannot spoil the IDs that come next. An ID is free
// again when the volume's record is gone, its data is erased, and the kernel counts nothing for it. An ID that does not
// become free within a minute marks files of another program or of a hostile pod, and is set aside until those are
// gone: a process may give its own files any project, unless it runs in a user namespace. So the limits are no wall
// against a hostile pod.
//
// A limit that was set is not believed: root of a container that has the disk's device, or a mount of it, changes any
// limit. [Projects.Held] compares it with what the record says, and sets it again.
//
// What the package does not do: it sets no project of a file that exists, and gives no volume a new
// limit.
package quota
