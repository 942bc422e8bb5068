package web

import (
	"sync"
	"time"
)

// idleness calls over when nothing was in use for a while.
type idleness struct {
	limit time.Duration
	over  func()

	mu    sync.Mutex
	users int
	until time.Time
	timer *time.Timer
}

func newIdleness(limit time.Duration, over func()) *idleness {
	i := &idleness{limit: limit, over: over, until: time.Now().Add(limit)}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.timer = time.AfterFunc(limit, i.due)
	return i
}

// due may come late: after a use that began and ended meanwhile.
func (i *idleness) due() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.users == 0 && !time.Now().Before(i.until) {
		i.over()
	}
}

// use begins a use. The function that it returns ends it.
func (i *idleness) use() (end func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.users++
	return func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.users--
		i.until = time.Now().Add(i.limit)
		i.timer.Reset(i.limit)
	}
}

func (i *idleness) stop() { i.timer.Stop() }
