// Package host is everything of a soak that touches the machine below the
// driver: the private mount namespace that a run lives in ([Enter]), the file
// system under the driver's working directory ([Disk]), the mount table
// ([Mounts], [MountedAt]), what a process uses ([ReadUsage]), and files that
// must never change ([Canaries]).
//
// It promises to leave nothing behind on the machine. Everything that it mounts
// is mounted in the private namespace and goes with it, loop devices free
// themselves with their mount, and a file system that [Disk.Stall] has frozen
// thaws even when this process is killed. For the last one the program has to
// call [RunHelper] before anything else.
//
// It never unmounts lazily: that would hide who still holds something.
//
// It knows nothing of pods, calls and the driver, and it breaks no promises of
// the machine but those that it is asked to: what to do, and when, is decided
// elsewhere. Filling the disk is not done here either; a pod does that, through
// its volume.
package host
