package hub

import "sync"

// mostWaiting is how many requests of one address may wait for their review. They wait in the order
// in which they came, so a client that sends one after the other delays others by no more than
// these take: half a second.
const mostWaiting = 100

// queue counts the requests that wait, by address. The zero queue is empty.
type queue struct {
	mu      sync.Mutex
	waiting map[string]int
}

// enter lets a request wait; false if too many of its address do. The caller calls leave.
func (q *queue) enter(address string) (leave func(), ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting[address] >= mostWaiting {
		return nil, false
	}
	if q.waiting == nil {
		q.waiting = map[string]int{}
	}
	q.waiting[address]++
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.waiting[address]--; q.waiting[address] == 0 {
			delete(q.waiting, address)
		}
	}, true
}
