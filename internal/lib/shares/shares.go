// Package shares divides slots among parties, such as namespaces, so that none keeps all others out.
//
// A party gets a further slot only while more are free than it has. So one alone gets half of all slots, a
// second one half of those that are left, and so on: there is a slot for each of the next ones to come. The number
// of parties need not be known, and a slot that is not taken belongs to none of them.
package shares

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
)

var (
	// ErrShare: the party has as many slots as it gets at present.
	ErrShare = errors.New("the share is used up")
	// ErrFull: no slot is free.
	ErrFull = errors.New("all slots are taken")
	// ErrQueue: too many of the party wait for a slot.
	ErrQueue = errors.New("too many wait")
)

// Shares are some slots. Their methods may be called from several goroutines.
type Shares struct {
	slots, mostOfOne, mostWaiting int

	mu      sync.Mutex
	taken   int
	parties map[string]*party
	// came numbers those that wait, and the grants.
	came uint64
}

// party has slots, or waits for some.
type party struct {
	taken int
	// granted is the number of the last grant; 0 where it had nothing since it came.
	granted uint64
	// waiting are its own, the first to come first.
	waiting []*waiter
}

type waiter struct {
	number  uint64
	granted chan struct{}
}

// New returns slots that are free. One party gets no more than mostOfOne of them, and no more than mostWaiting
// of its own wait.
func New(slots, mostOfOne, mostWaiting int) *Shares {
	return &Shares{slots: slots, mostOfOne: mostOfOne, mostWaiting: mostWaiting, parties: map[string]*party{}}
}

// Slots is how many slots there are.
func (s *Shares) Slots() int { return s.slots }

// Taken is how many slots are taken, and how many of them a party has.
func (s *Shares) Taken(of string) (all, own int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.parties[of]; p != nil {
		own = p.taken
	}
	return s.taken, own
}

// Take takes a slot for a party, if it gets one at once. It has the slot until it calls release, which counts
// once. The error is ErrShare or ErrFull.
func (s *Shares) Take(of string) (release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.party(of)
	if !s.allows(p) {
		s.forget(of)
		if s.taken >= s.slots {
			return nil, ErrFull
		}
		return nil, ErrShare
	}
	return s.grant(of, p), nil
}

// Wait is Take that waits for the slot. Of those that wait, the party with the fewest slots gets the next one, and of
// several the one whose last grant is longest ago: a party gets no more because more of its own wait.
// The error is ErrQueue, or that of ctx.
func (s *Shares) Wait(ctx context.Context, of string) (release func(), err error) {
	s.mu.Lock()
	p := s.party(of)
	if s.allows(p) {
		defer s.mu.Unlock()
		return s.grant(of, p), nil
	}
	if len(p.waiting) >= s.mostWaiting {
		defer s.mu.Unlock()
		s.forget(of)
		return nil, ErrQueue
	}
	s.came++
	w := &waiter{number: s.came, granted: make(chan struct{})}
	p.waiting = append(p.waiting, w)
	s.mu.Unlock()
	select {
	case <-w.granted:
		return s.releaser(of), nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(p.waiting, w); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
		s.forget(of)
	} else {
		s.release(of) // it was granted meanwhile
	}
	return nil, ctx.Err()
}

// party returns a party, new or not. The caller holds the lock, as it does for those below.
func (s *Shares) party(of string) *party {
	p := s.parties[of]
	if p == nil {
		p = &party{}
		s.parties[of] = p
	}
	return p
}

// forget forgets a party that has nothing.
func (s *Shares) forget(of string) {
	if p := s.parties[of]; p.taken == 0 && len(p.waiting) == 0 {
		delete(s.parties, of)
	}
}

// allows reports whether a party gets a further slot.
func (s *Shares) allows(p *party) bool { return p.taken < s.slots-s.taken && p.taken < s.mostOfOne }

func (s *Shares) grant(of string, p *party) (release func()) {
	s.give(p)
	return s.releaser(of)
}

func (s *Shares) give(p *party) {
	s.came++
	p.granted = s.came
	p.taken++
	s.taken++
}

func (s *Shares) releaser(of string) func() {
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.release(of)
	})
}

// release frees a slot of a party, and grants what is free then.
func (s *Shares) release(of string) {
	s.parties[of].taken--
	s.taken--
	s.forget(of)
	for p := s.next(); p != nil; p = s.next() {
		first := p.waiting[0]
		p.waiting = p.waiting[1:]
		s.give(p)
		close(first.granted)
	}
}

// next returns the party that gets the next slot; nil if none does.
func (s *Shares) next() (next *party) {
	for _, p := range s.parties {
		if len(p.waiting) == 0 || !s.allows(p) {
			continue
		}
		if next == nil || p.before(next) {
			next = p
		}
	}
	return next
}

// before reports whether a party gets the next slot, and not another one.
func (p *party) before(other *party) bool {
	return cmp.Or(
		cmp.Compare(p.taken, other.taken), cmp.Compare(p.granted, other.granted), cmp.Compare(p.waiting[0].number, other.waiting[0].number),
	) < 0
}
