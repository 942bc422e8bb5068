// Package archived is a model of the driver that Katbox carries on, for tests:
// it deletes in the same ways what it should not. A test that shows that the
// daemon loses nothing has to show by this one that it would see a loss.
//
// What it does right it does as simply as possible, and it makes real bind
// mounts. It deletes nothing but on a tmpfs that was mounted for it.
package archived
