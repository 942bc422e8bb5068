// Package store keeps the records of volumes on disk, and imports those of the
// old driver's database.
//
// # Promises
//
// A commit that returned nil survives a power cut; one that returned an error
// is wholly there or wholly absent, and may be repeated. An existing file is
// never taken for a new one: a damaged, empty or newer file is an error that
// says what to do, and a new file gets its name only once it is complete. A
// damaged file never takes the process down. With the file system full,
// commits go on: blocks for them are reserved ahead (see [Store.ReserveError]).
//
// It knows nothing of mounts and data directories, and decides nothing: what a
// record means after a crash is for its caller to find out.
//
// # Time
//
// Deadlines run on the monotonic clock, which ends with the process. So the time
// when a volume was unpublished is stored by two clocks: the wall clock, and
// CLOCK_BOOTTIME together with the boot of the kernel that it counts from.
// [Store.Load] works out how long ago it was, and subtracts that from a time that
// carries a monotonic reading. From then on a step of the wall clock moves no
// deadline.
//
// In the boot that a record was written in only CLOCK_BOOTTIME counts: whatever
// the wall clock did, the deadline stays. What is lost between a look at one clock
// and at the other makes it later, and never earlier.
//
// The wall clock is all there is for a record that was written in another boot, by
// a version without fields 8 and 9, or where the boot or CLOCK_BOOTTIME was not to
// be had. Written again, such a record gets the readings of the boot it is written
// in; until then each Load asks the wall clock. A stored time that lies in the
// future (the clock was stepped back in between) counts as now, so that such a step
// can only lengthen what is left of a lifespan. A step forward since the record was
// written cannot be told from time that passed.
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
//	                   namespace; absent if there is no unpublished time, or
//	                   no reading of CLOCK_BOOTTIME
//	9  boot time       integer, the reading of CLOCK_BOOTTIME at the unpublished
//	                   time, nanoseconds, negative before the boot; of use only
//	                   beside 8; absent for 0
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
