// Package story judges what became of a volume: events go in, what breaks a promise comes out. It does no I/O and
// knows no clock: an eye, which looks at a real node, tells it what was asked, answered and seen, and when.
//
// A call without an answer was carried out or was not. So a story keeps all worlds that the volume may be in after
// what is known of it. Whatever is seen has to fit one of them; those that it does not fit are out, and when none is
// left, a promise is broken. The numbers are those of the design.
//
//   - 1: the data of a volume is whole and in its place from its publish until an unpublish is asked for, and while
//     another pod has it attached.
//   - 2: an answer is durable across kills and power cuts. A published volume is recorded, and mounted until the node
//     reboots. Its pod sees what it should. A retained one is recorded, mounted nowhere, and has its data until its
//     deadline and not much longer, but for what hinders the daemon from deleting it. The deadline stays the same when a call is
//     repeated. It does not come back and is not kept for ever. One that is published again has all its data.
//   - 3: a failed publish that is answered as undone leaves no mount, no data and no record, and what was retained
//     before goes at its old deadline.
//   - 5: a volume goes as a whole: there is all of its data, or none. Where there is no room to move it, it is recorded
//     as deleting before the first file goes.
//   - 6: on a full disk a retained volume may go early, and a published one may not.
//   - 7: a pod that vanishes without an unpublish leaves a volume that expires, and so does data without a record.
//   - 11 and 14: what a person decided is in the record. One that is let go is kept for the grace and no longer, and so
//     is one that was attached. One that attaches another one has no data and no record left.
//   - 15: a persistent volume or a snapshot is there from its create until its delete, and no longer, with its size, its
//     data and what a person decided about it.
//
// Every answer and sight that an eye calls a failure breaks a story as well. What concerns no single volume is its
// eye's: other files, what is left of all volumes together, and the daemon's log.
//
// The room is outside of soak/internal because the crash tests of cmd/katbox tell it stories too.
package story
