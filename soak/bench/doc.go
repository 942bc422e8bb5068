// Bench measures what a call costs above the kernel's own work: side by side, in
// one run and on one file system, Katbox and the floor.
//
// The floor is this program again, in another process: a bare gRPC server. A
// publish makes the two directories of a volume, its target and one bind mount,
// with the system calls that Katbox uses for that, and writes a record to a
// file; an unpublish takes mount and target away and writes another. Records
// that wait are written by one write and one fdatasync. The file has its size and
// all its blocks beforehand, so that a sync makes the file system commit nothing of
// its own. It checks nothing and remembers nothing: no driver can do less and still
// answer as one.
//
// A second floor is the same server that records nothing at all. It shows what is left for a
// driver that answers before its records are on the disk, as Katbox does; one more point compares
// them beside a process that writes to the same disk without end.
//
// Katbox is the real daemon with its default flags. Both have the same file
// system, an ext4 with a journal on a loop device, and mount namespaces of their
// own, so that neither sees the other's mounts. The client is this program. Each
// caller has one connection, made before anything is measured, and publishes and
// unpublishes one volume after the other. The directories that a kubelet makes
// for its pods are made beforehand.
//
// They take turns, ABBA, and what is told is the median of the rounds, number
// by number. Where Katbox has volumes held or retained, a third takes turns with
// them: another Katbox that has none, which tells what those cost. The same where many
// were retained before and are gone: their records were written and forgotten again,
// and what that leaves in the file of records should cost nothing. A machine's speed
// changes too much from one point to the next for anything else. A ratio is the median
// of those of the turns, and not that of the medians beside it. The sweeps go along
// three axes, and are no cross product: callers with nothing held or retained;
// volumes held mounted, and volumes retained, both at one number of callers. A point
// begins with directories of its own, so at "0 retained" there is only what its own
// rounds leave.
//
// One more point compares with a Katbox that keeps what containers print: each of its pods has a
// log of 4 KiB, which it follows, holds open, and copies behind the calls.
//
// CPU time is that of the server's process alone, by its CPU clock, until shortly
// after the last answer, so that work put off counts too. What the kernel does in
// threads of its own, for the journal and the loop device, is not in it.
//
// Retained volumes are prepared without the daemon, by the documented format of
// its records (the package comment of internal/node/store), as a million calls would
// take too long: directories in the working directory, and a new file of records,
// half full as one that grew by itself. The floor's directory gets as many
// directories of pods, because making one among a million costs the kernel more.
// It has no records of them.
//
// Where volumes are retained, it asks the first Katbox for lists of them over its admin
// socket, as a person does: each question some dozens of times, one after the other, until
// the last byte of the answer. One retained volume of a thousand is in a namespace of its
// own. Then the callers do rounds in turns, without and with one client more that pages
// through all volumes without a pause.
//
// Besides it measures the start with retained volumes, until ready; how late
// deadlines are that fall due at an even rate, by when a volume's directory is
// seen to be gone; and how long it takes until retained volumes that fall due at
// once are gone, with the trash, against rm -rf of as many directories.
package main
