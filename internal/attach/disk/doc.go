// Package disk makes file systems on the disks of arrays, checks, mounts, grows and measures them, and gives
// devices to pods.
package disk
