// Package unpack unpacks an archive of a volume, as internal/node/tarball writes it, below a directory of
// the caller's. What is in the archive comes from a pod, so nothing in it is trusted:
//
//   - Each name is taken apart, and each element opened by the handle of the one above it, never
//     through a symbolic link: neither one that the archive brought nor one that was there. Absolute
//     names, "..", "." and empty elements are errors.
//   - There are regular files, directories, hard links to files below the directory, and symbolic
//     links if the caller wants them. Anything else is an error.
//   - setuid, setgid and sticky bits are dropped, and the umask applies. Files belong to the caller.
//     Windows has no modes; there a directory grants what is in it.
//   - Nothing that exists is written into, and nothing is replaced unless the caller says so. A file
//     gets its name once it is complete. Until then it has the name and ".partial", or ".partial.1"
//     and so on if something has that name. It stays there if the archive ends in the middle of it,
//     unless a later call is to go on: then it has a name that no volume has, and the later call removes it.
//   - An archive without its end is an error. archive/tar takes it for whole if it ends between two
//     files.
//
// What a destination can hold is a property of its file system, not of the operating system. A FAT on Linux has no hard
// links, no symbolic links, no "a:b" and no file of 4 GiB; an ext4 may take "A" and "a" for one. Windows and macOS refuse
// more by themselves: "CON", or text that is not UTF-8. An entry that is refused is left out with all that is below it and
// with hard links to it, and so is one whose name exists and may not be replaced. The rest is unpacked. A [LeftOutError]
// at the end names the first. No entry gets another name than the archive says: the user can copy such a file alone,
// under a name of their choice. Only what no other entry would get either ends the call, such as a full disk. A file system
// that keeps no modes, or only coarse times, loses no entry.
//
// Of two entries that have one name here the first stays, whatever the caller wants replaced. A directory is found to tell
// names apart when another spelling of the first name in it does not exist. In all others, the names that the archive
// brought are remembered, until the archive leaves the directory and those above. Nothing else grows with the archive.
//
// A block of zeros becomes a hole. Directories get their modes and times when the archive leaves them. One that exists
// and that its owner may not write is opened to them until then, if files may be replaced in it.
//
// Other processes of the caller may change the directory meanwhile. Then names may be missing or
// turn up elsewhere in what the caller moved, but a symbolic link is still not followed.
//
// Linux unpacks with handles that need no right to read a directory; all other systems with an os.Root
// for each directory.
package unpack
