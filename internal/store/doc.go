// Package store keeps the records of volumes on disk, and imports those of the
// old driver's database.
//
// # Promises
//
// A commit that returned nil survives a power cut; one that returned an error is
// wholly there or wholly absent, and may be repeated. A commit that readers see but
// the disk may not have, because a sync failed or the process was killed before it, is
// made durable before the next one: until the disk takes it, every commit fails.
//
// An existing file is never taken for a new one: a damaged, empty or newer file is an
// error that says what to do, and a new file gets its name only once it is complete.
// A damaged file never takes the process down. With the file system full, commits go
// on: blocks for them are reserved ahead (see [Store.ReserveError]).
//
// What a commit writes does not depend on how many records there once were: when most
// of the file is free, a smaller copy takes its name, beside commits and without a
// stop (see [Store.OnCompaction]). While the copy is made it has the file's name with
// ".new"; a start removes what is left of one. Without room for it everything goes on
// with the file as it is.
//
// It knows nothing of mounts and data directories, and decides nothing: what a
// record means after a crash is for its caller to find out.
//
// # Time
//
// Deadlines run on the monotonic clock, which ends with the process. So the time
// when a volume was unpublished is stored by two clocks: the wall clock, and the
// timeline, which is CLOCK_BOOTTIME carried on across reboots. [Store.Load] works
// out how long ago it was, and subtracts that from a time that carries a
// monotonic reading. From then on a step of the wall clock moves no deadline.
//
// In the boot that a record was written in only CLOCK_BOOTTIME counts: whatever
// the wall clock did, the deadline stays. What is lost between a look at one clock
// and at the other makes it later, and never earlier.
//
// A reboot begins CLOCK_BOOTTIME anew, and only the wall clock tells how long the
// machine was off. So each transaction notes both, and one does when the store is
// opened and whenever nothing was written for five minutes. The first look in
// another boot adds to the timeline what the wall clock shows to have passed since
// the last look in the old one, but
//
//   - at least nothing. A wall clock that is behind, as one without a battery,
//     takes nothing away: all that CLOCK_BOOTTIME told in earlier boots stays, so
//     that a lifespan is not begun again with each reboot;
//   - at most 15 minutes beyond what CLOCK_BOOTTIME can tell, which is how long
//     the new boot has been going on. A wall clock that is years ahead, until
//     somebody sets it, cannot be told from a machine that was off for years. It is
//     not believed, because what is deleted too early is lost, and what is kept
//     while the machine is off is in nobody's way.
//
// What was added once is not corrected when the wall clock is set later. Hence
//
//   - With a wall clock that goes on across the reboot, right or wrong, and no more
//     than 15 minutes from the last look to the new boot, no deadline moves. What is
//     more makes deadlines later: a machine that is off keeps its volumes.
//   - Whatever the wall clock shows, a reboot makes deadlines earlier by at most 15
//     minutes, and later by at most the time between the two looks: that for which
//     the daemon did not run, and the last five minutes that it did.
//   - A volume could be kept for ever only on a machine that reboots again and again
//     before the daemon has run for five minutes or written anything, with a wall
//     clock that does not go on.
//
// A boot ID may be new though CLOCK_BOOTTIME went on, where a container manager
// gives each container an ID of its own. So if CLOCK_BOOTTIME shows no less than at
// the last look, only the difference is taken for what it can tell.
//
// The wall clock is all there is for a record of no known timeline: that of another
// boot if a version without timelines wrote it, or if what was noted cannot be
// used; and any if the boot or CLOCK_BOOTTIME was not to be had, then or now.
// Written again, such a record is on the timeline; until then each Load asks the
// wall clock. A stored time that lies in the future (the clock was stepped back in
// between) counts as now, so that such a step can only lengthen what is left of a
// lifespan. A step forward since the record was written cannot be told from time
// that passed.
//
// A disk that is moved to another machine has another CLOCK_BOOTTIME there, which
// vouches for as long as that machine has been up: a wall clock that is ahead may
// then be believed for that much more than 15 minutes.
//
// A version without timelines reads what this one writes, after a reboot by the
// wall clock. It notes nothing, so that across a later reboot the time that it ran
// counts as time off.
//
// [Store.Rebooted] says that a reboot lies between the last look and this one. It has to
// be certain, for mounts go with a boot: the boot ID is another one, and CLOCK_BOOTTIME
// shows less.
//
// CLOCK_BOOTTIME goes on while the machine is suspended, as the wall clock does
// while it is off, and the monotonic clock does not. So a lifespan goes on in
// suspend, but a running daemon does not notice: its deadlines are late by that
// until the next Load, and a record that it writes again before that stays late.
// Never is one early by CLOCK_BOOTTIME.
//
// Readings of two time namespaces cannot be compared, so another time namespace
// counts as another boot. A reading that lies in the future counts as now.
//
// # Format 1
//
// The file is a bbolt database (go.etcd.io/bbolt, any page size) with two
// buckets.
//
// Bucket "meta":
//
//	format          the number of the format, decimal: "1"
//	legacyImported  when the old driver's database was imported, RFC 3339;
//	                absent if it was not
//	timeline        the last look at the clocks; absent if there was none
//	rebooted        there from a reboot on until what follows from it is recorded
//
// Unknown keys are left alone. The look has the same layout as a record (below),
// with this map:
//
//	1  number          integer, the boot that the timeline began in, as field 8
//	                   of a record
//	2  boot            integer, the boot of the look, likewise
//	3  ahead           integer, nanoseconds that the timeline is ahead of
//	                   CLOCK_BOOTTIME in that boot, negative if it is behind;
//	                   absent for 0
//	4  boot time       integer, the reading of CLOCK_BOOTTIME, nanoseconds;
//	                   absent for 0
//	5  wall            integer, wall clock, Unix nanoseconds
//
// One that cannot be used is replaced: a timeline begins.
//
// Bucket "volumes" has one pair for each volume. The key is the volume ID. The
// value is
//
//	1 byte   version of the value: 1
//	4 bytes  CRC-32C (Castagnoli, big endian) over key, version byte and the rest
//	rest     CBOR (RFC 8949), a map with integer keys
//
// bbolt has a checksum for its two meta pages only, and a flipped bit that
// turns one phase into another would delete the data of a running pod: hence a
// checksum for each value. It covers the key as well, so the ID is not repeated
// in the map:
//
//	1  pod UID         text
//	2  namespace       text, may be absent
//	3  pod name        text, may be absent
//	4  phase           the number of a volume.Phase
//	5  targets         array of maps, may be absent
//	6  unpublished     integer, wall clock, Unix nanoseconds; absent for none
//	7  lifespan        integer, nanoseconds; absent for 0
//	8  boot            integer, FNV-1a (64 bits) of the boot ID and the time
//	                   namespace that the timeline began in; absent if there is
//	                   no unpublished time, or no reading of CLOCK_BOOTTIME
//	9  boot time       integer, the reading of the timeline at the unpublished
//	                   time, nanoseconds, negative before that boot; of use
//	                   only beside 8; absent for 0
//	10 volume name     text, its name in the pod's spec; may be absent
//	11 service account text, may be absent
//	12 published       integer, Unix seconds; absent for none. It is for people and
//	                   no deadline depends on it, so the wall clock will do
//
// and in each target
//
//	1  path            text
//	2  read only       boolean, may be absent
//	3  mount flags     array of text, may be absent
//	4  multi writer    boolean, may be absent
//	5  leaving         boolean, may be absent
//
// Fields may be added without a new version. Unknown keys are tolerated, and
// lost when the record is written again. A value that cannot be used is left
// where it is and reported, see [Damaged].
//
// A new version of the value is for a change that old code would misread; a new
// format, which old code refuses to open, is for one it must not write to.
package store
