package uplink

import (
	"context"
	"sync"
	"time"

	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/metrics"
)

const (
	// mostAsks bounds how many pods wait to be asked about, and how many of those that were asked
	// about are remembered.
	mostAsks = 10_000
	// mostAsksInLine bounds one line of a summary, which may have 1 MiB: an ask takes at most 600 bytes.
	mostAsksInLine = 500
)

// asks are the pods whose owner the node wants to know. An ask waits in the queue until a gateway
// that listens takes it. What is not answered is asked again, of another gateway if there is one; see
// [Uplink.repeatAsks]. While no gateway listens nothing is kept: the volumes that are awake say what
// to ask once one does.
type asks struct {
	// again is after how long an ask is stale: in the queue, and without an answer.
	again   time.Duration
	metrics *metrics.Metrics
	// missing says that there may be volumes to ask for that are not in the queue.
	missing chan struct{}

	mu        sync.Mutex
	queue     []ask // the oldest first
	queued    map[volume.ID]struct{}
	sent      map[volume.ID]sending
	listeners map[*listener]struct{}
}

// ask is a pod to ask about.
type ask struct {
	word  api.OwnerAsk
	added time.Time
	// not is a gateway that did not answer; empty if there was none.
	not string
}

// sending is an ask that was sent and is not answered.
type sending struct {
	to *listener
	at time.Time
}

// listener is a gateway that reads a summary.
type listener struct {
	gateway string
	// ready has a value when there may be something for it in the queue.
	ready chan struct{}
}

func newAsks(again time.Duration, m *metrics.Metrics) *asks {
	return &asks{again: again, metrics: m, missing: make(chan struct{}, 1), queued: map[volume.ID]struct{}{},
		sent: map[volume.ID]sending{}, listeners: map[*listener]struct{}{}}
}

// signal wakes who waits for the channel.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// open adds a gateway that listens.
func (a *asks) open(gateway string) *listener {
	l := &listener{gateway: gateway, ready: make(chan struct{}, 1)}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.listeners[l] = struct{}{}
	signal(l.ready)
	signal(a.missing)
	return l
}

// close removes a gateway, if that was not done before. What it has not answered is asked again at once.
func (a *asks) close(l *listener) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, open := a.listeners[l]; !open {
		return
	}
	delete(a.listeners, l)
	for id, s := range a.sent {
		if s.to == l {
			a.sent[id] = sending{to: l}
			signal(a.missing)
		}
	}
	if len(a.listeners) == 0 {
		a.queue = nil
		clear(a.queued)
	}
	a.wake()
}

// wake is called with mu.
func (a *asks) wake() {
	for l := range a.listeners {
		signal(l.ready)
	}
}

// add asks about a volume's pod, if that makes sense and a gateway listens; else it is false. It never
// blocks.
func (a *asks) add(r volume.Record) (asked bool) {
	if !unasked(r) {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.listeners) == 0 {
		return false
	}
	a.enqueue(r, "")
	return true
}

// unasked reports whether a gateway can say whose the volume is. The pod of one that is retained may
// be gone, and then the answer would be that there was none.
func unasked(r volume.Record) bool {
	return r.Owner.Verdict == volume.Unasked && r.Namespace != "" && r.PodName != "" && r.Pod != "" &&
		(r.Phase == volume.Publishing || r.Phase == volume.Published)
}

// enqueue is called with mu.
func (a *asks) enqueue(r volume.Record, not string) {
	if _, there := a.queued[r.ID]; there {
		return
	}
	if len(a.queue) >= mostAsks {
		a.metrics.OwnerAsks("dropped", 1)
		signal(a.missing)
		return
	}
	a.queued[r.ID] = struct{}{}
	word := api.OwnerAsk{ID: string(r.ID), Namespace: r.Namespace, Pod: r.PodName, PodUID: string(r.Pod)}
	a.queue = append(a.queue, ask{word, time.Now(), not})
	a.wake()
}

// take takes up to a line's number of asks out of the queue, for a gateway that listens.
func (a *asks) take(l *listener) (words []api.OwnerAsk) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, open := a.listeners[l]; !open {
		return nil
	}
	a.forgetStale()
	now, left := time.Now(), a.queue[:0]
	for _, ask := range a.queue {
		if len(words) >= mostAsksInLine || ask.not == l.gateway && a.elsewhere(l.gateway) {
			left = append(left, ask)
			continue
		}
		id := volume.ID(ask.word.ID)
		delete(a.queued, id)
		words = append(words, ask.word)
		if len(a.sent) < mostAsks {
			a.sent[id] = sending{to: l, at: now}
		}
	}
	clear(a.queue[len(left):])
	a.queue = left
	if len(words) == mostAsksInLine {
		signal(l.ready)
	}
	a.metrics.OwnerAsks("sent", len(words))
	return words
}

// forgetStale takes asks out of the queue that no gateway has taken: their pods may be gone. If one
// is not, it is found by its volume. It is called with mu.
func (a *asks) forgetStale() {
	stale := 0
	for ; stale < len(a.queue) && time.Since(a.queue[stale].added) > a.again; stale++ {
		delete(a.queued, volume.ID(a.queue[stale].word.ID))
		signal(a.missing)
	}
	a.queue = a.queue[stale:]
}

// elsewhere reports whether another gateway listens.
func (a *asks) elsewhere(gateway string) bool {
	for l := range a.listeners {
		if l.gateway != gateway {
			return true
		}
	}
	return false
}

// answered notes that a gateway has named the owner of a volume.
func (a *asks) answered(id volume.ID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, there := a.sent[id]; there {
		delete(a.sent, id)
		a.metrics.OwnerAsks("answered", 1)
	}
}

// waiting reports whether a gateway listens and an ask has waited too long for its answer.
func (a *asks) waiting() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.listeners) == 0 {
		return false
	}
	if len(a.queue) > 0 && time.Since(a.queue[0].added) > a.again {
		return true
	}
	for _, s := range a.sent {
		if time.Since(s.at) > a.again {
			return true
		}
	}
	return false
}

// compare makes the queue agree with the volumes that are awake: who has no owner is asked about,
// unless it was a moment ago.
func (a *asks) compare(awake []volume.Description) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.forgetStale()
	sent := a.sent
	a.sent = make(map[volume.ID]sending, len(sent))
	for _, d := range awake {
		r := d.Record
		if !unasked(r) {
			continue
		}
		before, asked := sent[r.ID]
		switch {
		case asked && time.Since(before.at) <= a.again:
			a.sent[r.ID] = before
		case len(a.listeners) == 0:
		case asked:
			a.enqueue(r, before.to.gateway)
		default:
			a.enqueue(r, "")
		}
	}
}

// repeatAsks looks for volumes without an owner: when a gateway begins to listen, when one goes, and
// while answers are missing.
func (u *Uplink) repeatAsks(ctx context.Context) {
	look := time.NewTicker(u.pace.again / 3)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
			if !u.asks.waiting() {
				continue
			}
		case <-u.asks.missing:
			// A full queue must not make this a loop.
			if retry.Pause(ctx, u.pace.gather) != nil {
				return
			}
		}
		awake, err := u.awake(ctx)
		if err != nil {
			signal(u.asks.missing)
			if retry.Pause(ctx, u.pace.again/3) != nil {
				return
			}
			continue
		}
		u.asks.compare(awake)
	}
}

func (u *Uplink) awake(ctx context.Context) ([]volume.Description, error) {
	ctx, cancel := context.WithTimeout(ctx, ownLimit)
	defer cancel()
	return u.cfg.Volumes.Awake(ctx)
}
