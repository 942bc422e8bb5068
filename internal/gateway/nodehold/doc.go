// Package nodehold keeps a node from being removed by an autoscaler while volumes on it wait to be archived: it sets
// [ScaleDownDisabled] and [DoNotDisrupt] on the Node, and removes them when the last volume has its copy.
//
// A node is held at most 10 minutes after the last of these volumes was retained, and at most 20 minutes in any two hours,
// whatever is still waiting: a tenant whose pods fail every nine minutes must not keep a node for ever. Each hold counts for
// a minute at least.
//
// What is durable is in the annotation [Marker] of the same Node: since when it is held, which annotations were missing and
// are ours, and when it was held within the last two hours. An annotation that was there before is an administrator's: it is
// neither changed nor removed, and one that an administrator removes during a hold does not come back. A hold whose node no
// replica hears ends after 10 minutes, also when another gateway began it.
//
// Each replica decides for itself, by one pure function over the Node as it was read and what the node says; two come to
// the same end, because each writes with the resource version that it has read. Nothing is written while nothing changes.
//
// It does not keep a node that its cloud takes back, that fails, expires, or is deleted by a person.
package nodehold
