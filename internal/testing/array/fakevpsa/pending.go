package fakevpsa

import (
	"slices"
	"time"
)

// pending is a request that was submitted, and is done later.
type pending struct {
	Method string    `json:"method"`
	Path   string    `json:"path"`
	Params params    `json:"params"`
	Due    time.Time `json:"due,omitzero"`
	// At is the number of the request before which it is done; 0 is none.
	At int64 `json:"at,omitempty"`
}

// submit keeps a request for later.
func (a *Array) submit(c *call, f *Fault) *refusal {
	p := &pending{Method: c.method, Path: c.path, Params: c.params}
	if f.Delay > 0 {
		p.Due = c.now.Add(f.Delay)
	}
	if f.Requests > 0 {
		p.At = a.state.requests + f.Requests
	}
	a.state.pending = append(a.state.pending, p)
	if err := a.save(); err != nil {
		return refuse(otherError, "The state cannot be saved: %v", err)
	}
	return refuse(statusSubmitted, "The request has been submitted, please wait for its completion")
}

// settle does what is due; request tells that one has just come. The caller saves, or changes nothing
// that a restart would miss: what is done again after it is the same.
func (a *Array) settle(request bool) {
	now := a.now()
	a.state.purge(now)
	due := func(p *pending) bool {
		return !p.Due.IsZero() && !now.Before(p.Due) || request && p.At > 0 && a.state.requests >= p.At
	}
	a.finish(now, due)
}

// Settle does all that was submitted.
func (a *Array) Settle() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.finish(a.now(), func(*pending) bool { return true })
}

// Submitted returns how many requests were submitted and are not done.
func (a *Array) Submitted() (n int) {
	a.look(func(s *state) { n = len(s.pending) })
	return n
}

func (a *Array) finish(now time.Time, due func(*pending) bool) {
	var ready []*pending
	a.state.pending = slices.DeleteFunc(a.state.pending, func(p *pending) bool {
		if due(p) {
			ready = append(ready, p)
			return true
		}
		return false
	})
	for _, p := range ready {
		rt, id := find(p.Method, p.Path)
		c := &call{method: p.Method, path: p.Path, pattern: rt.pattern, id: id, params: p.Params, now: now}
		// A request that is refused by now was in vain; an array does not tell that either.
		_, _ = rt.handle(a.state, c)
		if err := a.made(c, true); err != nil {
			panic(err) // A test's disk is full, or its data plane broken.
		}
	}
}
