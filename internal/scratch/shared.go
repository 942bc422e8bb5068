package scratch

import (
	"errors"
	"sync"
)

// sharedSync has those who ask for a sync at the same time share one. A sync that
// is running when somebody asks does not count for that one: it may have begun
// before what is to be made durable was done.
type sharedSync struct {
	mu sync.Mutex
	// next has not begun yet; nil when nobody waits for it. last is the one that
	// was asked for last, which runs before the next.
	next, last *syncRound
}

// syncRound is one sync and what came of it, once done is closed.
type syncRound struct {
	done chan struct{}
	err  error
}

var errSyncPanicked = errors.New("the sync did not end")

// do returns what came of a call of sync that began after this one. Whoever asks
// first for a round runs it, when the one before has ended.
func (s *sharedSync) do(sync func() error) error {
	s.mu.Lock()
	if r := s.next; r != nil {
		s.mu.Unlock()
		<-r.done
		return r.err
	}
	r, before := &syncRound{done: make(chan struct{}), err: errSyncPanicked}, s.last
	s.next, s.last = r, r
	s.mu.Unlock()
	if before != nil {
		<-before.done
	}
	s.mu.Lock()
	s.next = nil
	s.mu.Unlock()
	defer close(r.done)
	r.err = sync()
	return r.err
}
