package retained

// besides is how much garbage a process with a large queue may collect before the next collection:
// about as much as the daemon's heap without the queue.
const besides = 32 << 20

// GCPercent returns the garbage collector's target ([debug.SetGCPercent]) for a process with a
// queue of that many bytes. By default the heap may double between two collections. The queue
// hardly changes, so the room to double would be wasted: at a million volumes some 150 MB.
//
// A low target makes collections no dearer: the collector does not look inside the queue, and the
// garbage between two collections remains besides or more.
func GCPercent(queue int) int { return 100 * besides / (besides + queue) }
