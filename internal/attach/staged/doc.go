// Package staged keeps a small durable record of each volume of an array that is staged on the node, or
// that was being staged or unstaged when the daemon ended. The record says which device and which session
// belong to the volume.
//
// It is written before the first change for a volume, and removed after the last one is undone. Each record
// is a file of its own in one directory, replaced as a whole: a crash leaves the old record or the new one.
// Save and Remove return when that is durable. A file that cannot be understood is renamed to end in
// .damaged and logged; nothing else is done to it.
//
// Nothing here touches an array, so nothing here waits for one.
package staged
