// Package retained is the queue of the retained volumes. It knows which one goes next, how long a
// volume that could not be deleted has to wait, and what the volumes take on the disk.
//
// A node may retain a million volumes, for hours. So a volume takes little memory, and that memory
// holds no pointers: the garbage collector does not look inside. See [GCPercent] for the other
// half.
//
// The package does no I/O, starts no goroutine and never asks for the time.
package retained
