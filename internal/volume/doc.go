// Package volume holds the nouns of Katbox: volume IDs, places, phases, records, the room on a
// file system, and the errors that every other package uses. It does no I/O and knows no protocol.
//
// A volume is one ephemeral inline volume of one pod. Its files are in its data directory, <working
// directory>/<pod UID>/<volume ID>. While the pod lives, the data directory is bind-mounted at a
// target path that the kubelet chose. Once the pod is gone, the volume is retained for its
// lifespan.
package volume
