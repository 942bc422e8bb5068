package actors

import "github.com/asynkron/protoactor-go/actor"

// Found is what a worker has found.
type Found[T any] struct {
	Value T
	Err   error
}

// find runs f. A panic in it is an error.
func find[T any](s *System, f func() (T, error)) (found Found[T]) {
	found.Err = Guard(s.log, func() (err error) {
		found.Value, err = f()
		return err
	})
	return found
}

// InWorker runs f in a worker, and then hands over its error; a panic in f is one. An actor's then sends it to the actor.
// InWorker's own error says why no worker takes f: nothing is handed over then.
func InWorker(s *System, f func() error, then func(error)) error {
	return s.Workers.Go(func() { then(Guard(s.log, f)) })
}

// Find runs f in a worker. The channel gets what has come of it.
func Find[T any](s *System, f func() (T, error)) (<-chan Found[T], error) {
	ended := make(chan Found[T], 1)
	return ended, s.Workers.Go(func() { ended <- find(s, f) })
}

// Pending is what a worker finds for an actor that goes on after a panic. It stays until the actor takes it, also where the
// message that announces it is lost. The zero value has nothing.
type Pending[T any] struct{ ended chan Found[T] }

// Begin runs f in a worker, and sends the message to the actor when there is something to take. Its error says why no worker
// takes f.
func (p *Pending[T]) Begin(s *System, to *actor.PID, ended any, f func() (T, error)) error {
	return p.begin(s, s.Workers.Go, to, ended, f)
}

func (p *Pending[T]) begin(s *System, run func(func()) error, to *actor.PID, ended any, f func() (T, error)) error {
	found := make(chan Found[T], 1)
	err := run(func() {
		found <- find(s, f)
		s.Root.Send(to, ended)
	})
	if err == nil {
		p.ended = found
	}
	return err
}

// Runs reports whether a worker was begun of which nothing was taken yet.
func (p *Pending[T]) Runs() bool { return p.ended != nil }

// Take returns what a worker has found, once it has ended.
func (p *Pending[T]) Take() (found Found[T], ok bool) {
	select {
	case found = <-p.ended: // a nil channel delivers nothing
		p.ended = nil
		return found, true
	default:
		return found, false
	}
}
