package trust

import (
	"context"
	"sync"
	"time"
)

// flights lets callers that ask the same question at the same time share one answer. A caller that
// leaves takes nothing from the others.
type flights[K comparable, V any] struct {
	mu      sync.Mutex
	running map[K]*flight[V]
}

// flight is one question. The answer is there once done is closed.
type flight[V any] struct {
	done  chan struct{}
	value V
	err   error
}

// do returns what ask returns, which has the time limit and runs once for all callers that come
// before it ends. The error of a caller whose context ends first is that of the context.
func (f *flights[K, V]) do(ctx context.Context, key K, limit time.Duration, ask func(context.Context) (V, error)) (V, error) {
	if err := ctx.Err(); err != nil {
		var none V
		return none, err
	}
	f.mu.Lock()
	one, running := f.running[key]
	if !running {
		one = &flight[V]{done: make(chan struct{})}
		if f.running == nil {
			f.running = make(map[K]*flight[V])
		}
		f.running[key] = one
		go func() {
			asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
			defer cancel()
			one.value, one.err = ask(asking)
			f.mu.Lock()
			delete(f.running, key)
			f.mu.Unlock()
			close(one.done)
		}()
	}
	f.mu.Unlock()
	select {
	case <-one.done:
		return one.value, one.err
	case <-ctx.Done():
		var none V
		return none, ctx.Err()
	}
}
