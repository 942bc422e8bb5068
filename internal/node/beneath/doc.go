// Package beneath opens what is in a directory that pods write to, where every name may be hostile.
//
// Each call names one path element relative to an open directory. It follows no symbolic link and
// enters no mount, not even a bind mount of the same file system: the kernel refuses both in
// openat2(2), and where that call is missing the package compares mount IDs.
//
// The package does not check names: a name is one path element, and neither "." nor "..".
package beneath
