// Package unpack unpacks an archive of a volume, as internal/archive writes it, below a directory of
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
//     unless a later call is to go on.
//   - An archive without its end is an error. archive/tar takes it for whole if it ends between two
//     files.
//
// A volume has names that a user's machine cannot have: "CON" and "a:b" on Windows, text that is not
// UTF-8 there and on macOS, and both "A" and "a" where a file system takes them for one. Such an entry is
// left out with all that is below it and with hard links to it, whatever the caller wants replaced, and
// the rest is unpacked. A [LeftOutError] at the end names the first. No entry gets another name than the
// archive says: the user can copy such a file alone, under a name of their choice. Linux has every
// name; on a file system of Linux that takes two names for one, the second replaces the first or is an
// error, as if it were the same.
//
// A block of zeros becomes a hole. Memory does not grow with the archive, except that macOS and Windows
// remember the names in the directory that the archive is in and in those above: directories get their
// modes and times when the archive leaves them.
//
// Other processes of the caller may change the directory meanwhile. Then names may be missing or
// turn up elsewhere in what the caller moved, but a symbolic link is still not followed.
//
// Linux unpacks with handles that need no right to read a directory; all other systems with an os.Root
// for each directory.
package unpack
