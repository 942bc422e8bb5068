// Package policy decides what a pod's volume is promised: what the pod asks for with the attributes of
// its volume, within the bounds that the administrator sets with flags, and with a file by namespace.
//
// It is arithmetic on values. It reads no file, and a Policy never changes.
package policy
