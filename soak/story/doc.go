// Package story judges what became of a volume: events go in, what breaks a promise comes out. It does no I/O and
// knows no clock: an eye, which looks at a real node, tells it what was asked, answered and seen, and when.
//
// A call without an answer was carried out or was not. So a story keeps all worlds that the volume may be in after
// what is known of it. Whatever is seen has to fit one of them; those that it does not fit are out, and when none is
// left, a promise is broken. The numbers below are those of the design.
//
//   - 1: the data of a published volume is whole and in its place, until an unpublish was asked for.
//   - 2: what was answered is durable: a published volume is published after a kill or a power cut, and a retained one
//     has its data until its deadline, and not much longer. It does not come back, and it is not kept for ever. One that
//     is retained keeps its deadline whatever is asked again, and one that is published again has all its data, until
//     it is unpublished again.
//   - 5: a volume goes as a whole: there is all of its data, or none.
//   - 7: a pod that vanishes without an unpublish leaves a volume that expires.
//   - Every answer and sight that an eye calls a failure breaks a story as well.
//
// What concerns no volume, such as other files, what is left of all volumes and the daemon's log, is its eye's.
//
// The room is outside of soak/internal because the crash tests of cmd/katbox tell it stories too.
package story
