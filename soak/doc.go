// Soak plays the kubelet against a Katbox daemon and proves that nothing was
// lost. It starts the daemon itself, in a mount namespace of its own, lets pods
// live and die on it, breaks things, and compares what the daemon answers, what
// is mounted and what is on the disk with what was promised, and at the end what the
// daemon uses and has on record with what it should.
//
// It is a black box: it knows CSI, the layout of the working directory and of the
// records in it, the daemon's command line and its admin socket, which it uses by the
// client that people use too, and nothing of the daemon's code.
//
// This package is the program: the command line, the environment that a run is played
// on, the pods with their containers. The parts that it is made of are below
// internal; imports go one way, in this order:
//
//   - report tells what came of it: tables, page, JSON, progress.
//   - reader reads retained volumes beside all that, as people do.
//   - check judges: answers, published data, deadlines, what is left over.
//   - faults breaks things; daemon runs the driver; clock is one that steps.
//   - local plays the controller, the kubelet and the pods of local persistent volumes.
//   - kubelet is a kubelet's volume manager; misuse makes calls with bad input.
//   - content is what pods write, synced what is known to be on the disk, host the disk
//     and the mounts below all that.
//   - history is the story of each volume, and the promises.
//   - workload is what a run does, decided by a seed before it happens.
//   - story, beside internal, decides whether what was seen of a volume keeps the promises:
//     for check, for the power cuts and for the crash tests of cmd/katbox. testbed, beside it,
//     lays a node out, runs the daemon's process, and makes the kubelet's calls for those who
//     play one by hand.
//   - pause waits, quantile sums up times, and readme puts text into a page, for
//     all of them and for the programs beside them.
//
// Only tests have fake, a driver that does wrong in one way or another; dataloss plays
// one by one what drivers have lost data by.
//
// It does not prove what a power cut leaves behind, as the page cache survives
// every kill: powercut, a program of its own beside internal, does; arrays, another one,
// plays pods on persistent volumes. It does not
// measure capacity; bench, another one, measures what calls cost. demo shows it to
// people, and proves nothing.
package main
