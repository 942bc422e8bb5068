package local

import (
	"sync"

	"github.com/katbox/katbox/internal/node/localdisk"
)

// opened is a pool's directory that operations use. It is closed after the last of them, once it has been left.
type opened struct {
	localdisk.Dir
	// closed is called when it has been closed.
	closed func(error)

	mu   sync.Mutex
	uses int
	left bool
}

// use counts a user, until release is called.
func (o *opened) use() (release func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.uses++
	return sync.OnceFunc(func() { o.end(false) })
}

// leave closes the directory once no one uses it. It is called once; no new user comes after it.
func (o *opened) leave() { o.end(true) }

func (o *opened) end(leave bool) {
	o.mu.Lock()
	if leave {
		o.left = true
	} else {
		o.uses--
	}
	last := o.left && o.uses == 0
	o.mu.Unlock()
	if last {
		go func() { o.closed(o.Close()) }() // it may hang
	}
}
