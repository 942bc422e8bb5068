// Soak plays the kubelet against a Katbox daemon and proves that nothing was
// lost. It starts the daemon itself, in a mount namespace of its own, and sends
// it a churn of pods: calls in the kubelet's order, each on a new connection,
// some of them doubled, some cancelled midway, and the daemon killed now and
// then. Each volume gets a marker file, and the markers are followed to the end
// of their lifespan.
//
// It is a black box: it knows CSI, the working directory's layout and the
// daemon's command line, and nothing of the daemon's code.
//
// It promises to report a violation when
//
//   - a call is refused with a code that the situation does not excuse,
//   - a marker is not where it has to be, while its pod lives or until its
//     deadline,
//   - a read-only volume can be written to,
//   - a target, a mount, a data directory or trash is left over,
//   - the daemon ends on its own, or does not end when it is told to.
//
// What happened is told on the terminal, and on request in a page with charts
// (--report) and in a file for machines (--json, see [result]).
//
// Everything random is decided by the seed before it happens (see [plan]): the
// same seed makes the same pods, the same doubled and cancelled calls and the
// same kills. How the calls interleave is up to the machine.
//
// It does not prove what a power cut leaves behind, as the page cache survives
// every kill, and it does not measure capacity.
package main
