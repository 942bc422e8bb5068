// Package mount makes, inspects and takes away bind mounts of directories by
// direct system calls, behind the Interface of k8s.io/mount-utils.
//
// It promises:
//
//   - A mount appears with its flags or not at all. The flags are set before
//     the mount is attached, so they also hold in the copies that mount
//     propagation makes in other mount namespaces. Kernels before 5.12 cannot
//     do that; see [Mounter.Mount] for what they get.
//   - The last element of a source, a target or a path to unmount is never
//     followed when it is a symbolic link.
//   - An unmount is an unmount: it is neither lazy nor forced, and the kernel's
//     refusal comes back as it is, for errors.Is.
//   - To tell whether a path is a mount point costs the same with ten mounts and
//     with ten thousand. Functions that read the mount table say so.
//
// It keeps no state and takes no locks. It does not make or remove the
// directories it mounts on, does not retry, and does not know volumes. The caller
// prevents two operations on one target at the same time: a look at a mount point
// may make an unmount of it fail with EBUSY.
//
// The fallbacks for old kernels and the mount table need /proc.
package mount
