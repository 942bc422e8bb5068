// Package store keeps the records of volumes on disk, and imports those of the old driver.
//
// A commit that returned nil survives a power cut. One that returned an error is on disk whole or
// not at all, and may be repeated. What [Store.Journal] has taken over survives the end of the process, and a
// power cut once a later commit has returned nil. With a full disk commits go on, see [Store.ReserveError]. What a
// commit writes does not grow with the number of records that once existed, see
// [Store.OnCompaction].
//
// An existing file is never taken for a new one: a damaged, empty or newer file is an error that
// says what to do. No damage to a file ends the process. The store knows no mounts and no data
// directories: what a record means after a crash is up to its caller.
//
// # Why bbolt
//
// A database of our own would need no memory map and no check of pages. It would also be one more
// to prove against power cuts, full disks and damage. The journal beside bbolt is none: nothing
// relies on it after a power cut. Durable storage is not what Katbox
// is for, and other tools read bbolt's format. What it lacks is here: a check of the file
// (boltfile), faults as errors (database.go), commits in doubt (settle.go), room on a full disk
// (reserve.go, btrfs.go) and a smaller file (compaction.go). Do not spend more on taming it.
// soak/bench/README.md has what other stores would give.
//
// # Format 2
//
// The file is a bbolt database (go.etcd.io/bbolt, any page size) with three buckets, and may have a journal
// beside it: two files whose names end in .journal-0 and .journal-1 (see journalfile.go). Format 1 had no journal; it is
// read, and rewritten with the first transaction. A version that knows format 1 alone refuses format 2, because it
// would not see what a crash has left in the journal. In bucket "meta" unknown keys are left alone:
//
//	format          the number of the format, decimal: "2"
//	journal         the journal's state; absent if there never was one
//	legacyImported  when the old driver's database was imported, RFC 3339; absent if it was not
//	timeline        the last look at the clocks (see timeline.go); absent if there was none
//	rebooted        present from a reboot until its consequences are recorded
//
// Bucket "volumes" has one pair for each volume: the key is the volume ID. The value, like those of
// the timeline and the journal, is
//
//	1 byte   version of the value: 1
//	4 bytes  CRC-32C (Castagnoli, big endian) over key, version byte and the rest
//	rest     CBOR (RFC 8949), a map with integer keys
//
// bbolt has a checksum for its two meta pages only. One flipped bit can turn a phase into another
// and delete the data of a running pod, hence a checksum for each value. It covers the key, so the
// map does not repeat the ID:
//
//	1  pod UID         text
//	2  namespace       text, may be absent
//	3  pod name        text, may be absent
//	4  phase           the number of a volume.Phase
//	5  targets         array of maps, may be absent
//	6  unpublished     integer, wall clock, Unix nanoseconds; absent for none
//	7  lifespan        integer, nanoseconds; absent for 0
//	8  boot            integer, FNV-1a (64 bits) of the boot ID and the time namespace that the
//	                   timeline began in; absent without an unpublished time or CLOCK_BOOTTIME
//	9  boot time       integer, the timeline at the unpublished time, nanoseconds, negative before
//	                   that boot; only beside 8; absent for 0
//	10 volume name     text, its name in the pod's spec; may be absent
//	11 service account text, may be absent
//	12 published       integer, wall clock, Unix seconds; absent for none; no deadline depends on it
//	13 verdict         the number of a volume.Verdict; absent for Unasked
//	14 namespace UID   text, of the pod's namespace; 14 to 19 are absent unless 13 is Confirmed
//	15 owner kind      text, of the pod's controller; may be absent
//	16 owner name      text, may be absent
//	17 owner UID       text, may be absent
//	18 job             text, the pod's label batch.kubernetes.io/job-name; may be absent
//	19 job index       text, its annotation .../job-completion-index; may be absent
//	20 lifespan        integer, nanoseconds, of the volume's terms; absent for 0
//	21 succeeded       integer, nanoseconds, the lifespan after success; absent for 0
//	22 retain          the number of a volume.Retain; absent for RetainAlways
//	23 limit           integer, bytes; absent for none
//	24 inode limit     integer; absent for none
//	25 mode            integer, the mode of the top directory; absent for the default
//	26 outcome         the number of a volume.Outcome; absent for OutcomeUnknown
//	27 hold            the number of a volume.HoldKind; absent for NoHold
//	28 hold for        integer, nanoseconds after the unpublish; absent for 0
//	29 hold by         text, who decided; may be absent
//	30 hold why        text, the reason; may be absent
//	31 project         integer, the ID of the project quota; absent for none
//	32 attached pod    text, pod UID of the volume that is mounted in place of one of its own
//	33 attached volume text, its ID; beside 32 only
//	34 no logs         true if what the pod's containers print is not kept; absent otherwise
//	35 archive         the number of a volume.Archive, of the volume's terms; absent for ArchiveNever
//	36 archived until  integer, wall clock, Unix seconds; absent if the archive has no copy
//	37 seal            text, the gateway's of the owner; may be absent
//
// each target
//
//	1  path            text
//	2  read only       boolean, may be absent
//	3  mount flags     array of text, may be absent
//	4  multi writer    boolean, may be absent
//	5  leaving         boolean, may be absent
//
// and the look; one that cannot be used is replaced:
//
//	1  number          integer, the boot that the timeline began in, as field 8 of a record
//	2  boot            integer, the boot of the look, in the same form
//	3  ahead           integer, nanoseconds that the timeline is ahead of CLOCK_BOOTTIME in that
//	                   boot, negative if it is behind; absent for 0
//	4  boot time       integer, the reading of CLOCK_BOOTTIME, nanoseconds; absent for 0
//	5  wall            integer, wall clock, Unix nanoseconds
//
// The journal's state is no CBOR: 16 bytes that name the database, 8 bytes that name the run of the daemon which
// wrote the entries that count, and the number of the last entry that is in the database, 8 bytes, big endian. One that
// cannot be used is replaced, and the journal is set aside.
//
// 13 to 19 and 37 together are one owner, 20 to 25, 34 and 35 are the terms, 27 to 30 a hold. An owner that
// volume.Owner.Check refuses without its seal too counts as not asked for. Of the fields from 20 on each of these, and each
// one that stands alone, counts as absent if it cannot be used. A hold loses its texts first.
//
// Bucket "gone" has one pair for each tombstone: the key is its number, 8 bytes, big endian. A later one has
// a higher number, and numbers may be missing between. It is made with the first one. An earlier version leaves
// it alone. The value is one as above, with this map:
//
//	1  volume ID       text
//	2  record          the map of a record, without targets
//	3  bytes           integer, what the volume took; absent for 0, as all that follow
//	4  inodes          integer
//	5  gone            integer, wall clock, Unix seconds
//	6  kept            integer, nanoseconds
//	7  reason          the number of a volume.Reason
//	8  factor          number, from 0 to 1, the pressure factor
//	9  free bytes      integer, on the file system then
//	10 free inodes     integer
//	11 by              text, who ended the lifespan
//	12 why             text, the reason that was given
//
// Fields may be added without a new version. Unknown keys are tolerated, and lost when the record
// is written again. A value that cannot be used stays where it is and is reported, see [Damaged]. A
// new version of the value is for a change that old code would misread; a new format, which old
// code refuses to open, is for one that it must not write to.
package store
