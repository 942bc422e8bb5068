// Package content writes what pods write into their volumes, and looks at it
// again. Everything in a volume but its marker is decided by a seed, so that
// looking again needs no list of what was written: a million volumes cost no
// memory.
//
// It promises
//
//   - that the marker of a volume is like that of no other volume,
//   - that the same [Spec] always makes the same content,
//   - to work relative to an open handle of the volume's directory and never to
//     follow a symlink in it, so that it cannot write elsewhere,
//   - to keep no handle open between two calls: a handle of a target would keep
//     it from being unmounted,
//   - never to wait for a FIFO, and to need little memory whatever the sizes.
//
// It does not make devices, does not sync, and does not look for what was
// added to a volume. To read and write files without permissions it has to be
// root, or root of a user namespace.
package content
