// Package lastwords keeps what the containers of a pod have printed, past the end of the pod.
//
// The kubelet has it in <pod logs directory>/<namespace>_<pod>_<UID>/<container>/<restart>.log, and removes that with the
// containers of a deleted pod: at times before it unpublishes the pod's volumes. So [Logs] follows the directories of
// pods by inotify(7), and holds their files open: an open file can be read to its end, even after its
// name is gone. [Logs.Look] opens what is there at the unpublish, and [Logs.Copy] copies all of it, later. What the kernel has
// noted of a directory is read before anything is concluded, so an unpublish after which all is open costs one system call.
//
// Nothing of that is trusted. Directories and files are opened by [beneath], names have the form that the kubelet gives
// them, and a file is read only if it is a regular one that has no second name. Another process may write to a file
// meanwhile; what is copied is what a file has when it is copied.
//
// The number of open files is bounded, for each pod and for all. What is not open when its name is removed is lost.
// A file that the kubelet has removed, as those of earlier restarts, is closed after a minute, so that its space comes
// free; the newest of each container stays open.
package lastwords
