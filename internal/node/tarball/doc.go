// Package tarball writes a directory or a file of a retained volume as a tar archive, for any tar to
// unpack: ustar, PAX where an entry needs it, and files with holes as GNU's sparse format 1.0.
//
//   - Names are relative to the directory, which has no entry itself. A file is an entry of its name.
//   - Regular files, directories and symbolic links have entries. FIFOs, sockets, devices and what
//     is mounted have none, and are counted.
//   - Owner and mode are kept, setuid and setgid bits are dropped. The fraction of a second of a time is a PAX record, which
//     costs 1 KiB; a program that knows no such records takes whole seconds. There are no user names.
//   - Bytes that are not UTF-8 stay as they are. The entry then has the PAX record hdrcharset=BINARY.
//   - A second name of a file is a hard link as long as the names that are remembered for this take
//     less than 1 MiB. Then it is a copy.
//   - A file of at least 64 KiB that takes less room on the disk than its size is written with its
//     holes. If it has more than 16,384 extents of data, the smallest holes are written as zeros.
//
// The same files give the same bytes, in the order of the directories. So an archive that broke off
// can be resumed at any byte: before it, only names, sizes and holes are read again.
// The caller compares what identifies the volume; it is retained, so no pod changes it.
//
// A file that changes meanwhile does not break the archive: its entry has the announced size, filled
// up with zeros, and the report counts it. Everything else that goes wrong is an error, and the
// archive then has no end.
package tarball
