package arrays

import (
	"sync"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// figures are what the actors together come to, for the metrics.
type figures struct {
	metrics Metrics
	mu      sync.Mutex
	// late are the operations whose callers were answered before the end, with their beginnings.
	late map[volume.ID]time.Time
	// sessions are the targets that volumes need, and whether their sessions carry I/O.
	sessions map[string]bool
}

// isLate notes since when an operation has been running that callers do not wait for any more; the zero time
// says that it has ended.
func (f *figures) isLate(id volume.ID, since time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if since.IsZero() {
		delete(f.late, id)
	} else {
		f.late[id] = since
	}
	var oldest time.Time
	for _, since := range f.late {
		if oldest.IsZero() || since.Before(oldest) {
			oldest = since
		}
	}
	f.metrics.ArrayWaits(len(f.late), oldest)
}

// session notes how the session to a target is. needed is false once no volume needs it.
func (f *figures) session(target string, needed, up bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if needed {
		f.sessions[target] = up
	} else {
		delete(f.sessions, target)
	}
	ups := 0
	for _, up := range f.sessions {
		if up {
			ups++
		}
	}
	f.metrics.ArraySessions(ups, len(f.sessions)-ups)
}
