// Package resource is how retained volumes look as a resource of the Kubernetes API: the types of
// katbox.io/v1alpha1, the names of volumes, discovery, OpenAPI, tables, selectors and errors. It
// does no I/O, and depends on Kubernetes' API machinery alone.
//
// A volume becomes a [RetainedVolume] by [From]. It has no resourceVersion, neither has a list: the
// API has no watch, and a list with a resourceVersion looks to clients like something to watch from.
//
// # Names
//
// The name of a volume is the name of its pod, or of the deleted claim that had it, cut at 240 bytes, a
// dot, and 12 digits of base 32: 4 are from the hash of the node's name, 8 from the hash of the volume's
// ID. So the gateway knows from a name which node to ask, and needs no index of volumes. See [Name] and
// [ParseName].
//
// # Labels
//
// A volume has up to three labels: [LabelJob], [LabelOwnerKind] and [LabelForeign]. They are
// computed, not stored, and the labels of the pod are not known.
package resource
