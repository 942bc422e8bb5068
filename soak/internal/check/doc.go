// Package check keeps an account of what the driver promised to whom and when,
// and compares it with what the driver answers and with what the mount table
// and the disk show. Each promise of the design is a named check here, in a
// file of its own where it takes one; what is found broken goes to
// [history.Findings] with what was expected, by when, and what was found.
//
// The checker is told of every call and of every turn in a volume's life, and
// looks at the rest by itself, at a bounded rate whatever the number of
// volumes. Where it cannot know a moment exactly, because the driver acted
// between two of its looks, it keeps an interval and reports only what no moment
// in it excuses. A fault that excuses something has to be noted, in the volume's
// story or the timeline, before it is brought about.
//
// What may become of a volume, and from when until when, is decided by package story. It is told
// what the kubelet, people and other pods did with the volume, what put its deletion off, and what a
// look finds of its data and its mount: see story.go and excuses.go. Three things stay here, because a
// story knows neither the disk of a machine nor other volumes. Pressure is measured, and the order in
// which it takes volumes compares several. Since when a volume goes because of others of its owner is
// counted, and then told to its story. And of a volume that is there in part only a later look
// says whether it was on its way.
//
// It changes nothing on the node, and knows nothing of what is in a volume: how
// to look at a volume, at the disk and at the mount table is given to it.
package check
