// Package scratch owns the data directories in the working directory:
// <working directory>/<pod UID>/<volume ID>. It makes, finds, measures and
// deletes them.
//
// What is in a data directory was written by pods and is taken to be hostile.
// The package promises that it never leaves the working directory: every system
// call names one path element relative to an open directory, no symbolic link
// is followed, and no mount found inside is entered, not even a bind mount of
// the same file system.
//
// A deletion has two steps. [Dir.Discard] moves the data directory into the
// trash, <working directory>/.trash, by one rename, so that a volume is either
// wholly there or wholly gone; [Dir.SyncTrash] makes that durable. [Dir.Erase] then
// frees the space; if it is interrupted, the entry stays in the trash ([Dir.TrashPage])
// to be erased later. Where the trash does not take a data directory, as on a full
// disk that has no room for one more name, [Dir.EraseInPlace] does without. Both can
// be paced.
//
// Flags that have a removal refused even to root (chattr +i and +a, a read-only
// subvolume of btrfs) are taken away when that happens. What stays is what
// something is mounted on, a swap file in use, the default subvolume, and what
// somebody keeps filling or moving; each with an error that says where it is.
// Nothing but directories is ever opened, except regular files that have such a
// flag.
//
// The package does not know which volumes are in use: that a data directory is
// mounted nowhere is for the caller to make sure before Discard. Operations on
// different volumes may run at the same time, also in one pod's directory;
// those on the same volume, and those on the same trash entry, are the
// caller's to serialise.
package scratch
