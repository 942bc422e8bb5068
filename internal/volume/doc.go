// Package volume holds the nouns of Katbox: volume IDs, phases, records and
// the errors that every other package speaks of. It does no I/O and knows no
// protocol.
//
// A volume is one ephemeral inline volume of one pod. Its files live in its
// data directory, <working directory>/<pod UID>/<volume ID>. While the pod
// lives the data directory is bind-mounted at a target path that the kubelet
// chose; once the pod is gone the volume is retained for its lifespan.
package volume
