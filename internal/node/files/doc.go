// Package files reads the files of one retained volume for people: it stats, lists, walks and opens
// what is below a data directory.
//
// A pod wrote all of it, so every name and every file may be hostile. The package resolves a path
// one element at a time, by handle, below the data directory ([beneath.Opener]): it follows no
// symbolic link and enters no mount. It looks at a name before it opens it, and opens the very inode
// that it looked at: only regular files and directories are ever opened. A FIFO, a socket or a
// device is an [Entry] and nothing else. It needs /proc.
//
// Reading leaves no trace: access times stay as they are where the process has the privileges. It
// holds a bounded amount of memory and of handles, whatever the size and the depth of the tree.
//
// The package reads only. It knows neither who asks nor whether the volume is still retained: the
// caller ends the context, or stops calling.
package files
