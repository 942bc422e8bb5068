package retained

// garbage is how much garbage may wait for a collection in a process with a large queue: about
// twice the daemon's heap without the queue.
const garbage = 32 << 20

// GCPercent returns the garbage collector's target ([debug.SetGCPercent]) for a process with a
// queue of that many bytes. By default the heap may double between two collections. The queue
// hardly changes, so the room to double would be wasted: at a million volumes some 150 MB.
//
// A low target costs no more CPU: the collector does not look inside the queue, and the garbage
// between two collections is what it would be without the queue.
func GCPercent(queue int) int { return 100 * garbage / (garbage + queue) }
