// Package scratch owns the data directories in the working directory:
// <working directory>/<pod UID>/<volume ID>. It makes, finds, measures and
// deletes them.
//
// Pods write the data directories, so their content is taken to be hostile. The package
// promises that it never leaves the working directory: every system call names one path
// element relative to an open directory, follows no symbolic link, and enters no mount,
// not even a bind mount of the same file system.
//
// A deletion has two steps. [Dir.Discard] moves the data directory into the
// trash, <working directory>/.trash, by one rename, so that a volume is either
// wholly there or wholly gone; [Dir.SyncTrash] makes that durable. [Dir.Erase] then
// frees the space; if it is interrupted, the entry stays in the trash ([Dir.TrashPage])
// to be erased later. Where the trash does not take a data directory, as on a full
// disk that has no room for one more name, [Dir.EraseInPlace] erases it where it is. A
// [Pace] can slow both down.
//
// Some flags make the kernel refuse a removal even to root (chattr +i and +a, a read-only
// subvolume of btrfs); the package clears them then. It cannot remove mount points, a swap
// file in use, the default subvolume, and directories that a process keeps filling or
// moving; the error says where they are. It opens nothing but directories, and regular
// files that have such a flag.
//
// The package does not know which volumes are in use: before Discard the caller makes
// sure that the data directory is mounted nowhere. Operations on different volumes may run
// at the same time, also in one pod's directory. The caller serialises those on one volume
// and those on one trash entry.
package scratch
