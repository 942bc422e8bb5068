// Package archiver copies retained volumes to the archive, one after the other: those of failures first, and among equals the
// newest. [Archiver] asks which is next, reads the volume as people do, under a lease and giving way to calls, and uploads it in
// the form of package archived, straight to the bucket. It has no credential of the bucket: a gateway signs a URL for each
// object, see [Asker].
//
// Nothing is kept of a copy that was cut. The next one makes the same pieces again, and skips the upload of those that the bucket
// has. A volume is archived once its index is in the bucket; [Volumes] records that.
//
// What fails for a while is tried again, with growing waits: the volume after others, and all of them while none succeeds. What
// cannot be archived, because it is too large or a gateway refuses it for good, is left out until the daemon starts again. Both
// are logged once, and counted with a reason.
package archiver
