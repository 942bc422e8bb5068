package local

import (
	"context"
	"time"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/volume"
	localmessages "github.com/katbox/katbox/messages/local"
)

// readers are those of the volumes of a pool. A reader has a reading, and all readings of a volume share one showing.
type readers struct {
	// readings are those of its volumes, by what asked for them.
	readings map[*localmessages.ReadLocal]reading
	// showings are what was made readable of its volumes, by their names.
	showings map[string]*showing
}

func newReaders() readers {
	return readers{readings: map[*localmessages.ReadLocal]reading{}, showings: map[string]*showing{}}
}

// reading is one of a volume of a pool.
type reading struct {
	*showing
	lose    context.CancelCauseFunc
	release func()
}

type (
	// lingered says that a showing may have had no readers for a while.
	lingered struct {
		pool *pool
		*showing
	}
	// showingEnded says that nothing is left of a showing.
	showingEnded struct {
		pool *pool
		*showing
	}
)

// read lends a volume to a reader.
func (k *keeper) read(m *localmessages.ReadLocal) (lease localmessages.LocalLease, err error) {
	p, err := k.whereIs(m.Name)
	if err != nil {
		return lease, err
	}
	d, err := p.readable(m.Name)
	switch {
	case err != nil:
		return lease, err
	case p.dir == nil || p.failed != "":
		return lease, p.away()
	}
	s, err := k.show(p, m.Name)
	if err != nil {
		return lease, err
	}
	s.readers++
	actors.StopTimer(s.timer)
	lost, lose := context.WithCancelCause(context.Background())
	r := reading{s, lose, p.dir.use()}
	p.readings[m] = r
	return localmessages.LocalLease{
		UsableLocal: localmessages.UsableLocal{Dir: p.dir, UUID: p.is.UUID, Release: r.release}, Description: d, Lost: lost, Open: s.open,
	}, nil
}

// endReading ends a reading, if it was granted.
func (k *keeper) endReading(m *localmessages.ReadLocal) {
	for _, p := range k.pools {
		if r, ok := p.readings[m]; ok {
			delete(p.readings, m)
			r.lose(nil)
			r.release()
			k.leave(p, r.showing)
		}
	}
}

// recall tells the readers of a volume that it is not theirs any more, if that is so. Nothing waits for them here.
func (k *keeper) recall(p *pool, name string) {
	if len(p.showings) == 0 {
		return
	}
	if _, err := p.readable(name); err != nil {
		k.lose(p, err, func(of string) bool { return of == name })
	}
}

// recallAll is recall for all volumes of a pool.
func (k *keeper) recallAll(p *pool, why error) { k.lose(p, why, func(string) bool { return true }) }

// lose ends the showings of some volumes, and tells their readers why.
func (k *keeper) lose(p *pool, why error, which func(name string) bool) {
	for _, r := range p.readings {
		if which(r.name) {
			r.lose(why)
		}
	}
	for name, s := range p.showings {
		if which(name) {
			k.endShowing(p, s)
		}
	}
}

// show returns the showing that a new reader of a volume has, unless too many images are shown.
func (k *keeper) show(p *pool, name string) (*showing, error) {
	s := p.showings[name]
	image := p.is.Backend == local.Image
	switch {
	case s != nil && !s.ending && s.readers > 0:
		return s, nil
	case image:
		if err := k.makeRoom(s); err != nil {
			return nil, err
		}
	}
	if s != nil && !s.ending {
		return s, nil
	}
	fresh := &showing{name: name, dir: p.dir, release: p.dir.use(), gone: make(chan struct{}), opening: make(chan struct{}, 1)}
	fresh.ctx, fresh.cancel = context.WithCancel(k.ctx)
	if s != nil {
		fresh.before = s.gone
	}
	if image {
		fresh.slots = k.slots
	}
	p.showings[name] = fresh
	return fresh, nil
}

// makeRoom makes sure that one more image may be shown, which may be one without readers. Of the others without
// readers, the one that has been so for the longest time ends if its slot is needed.
func (k *keeper) makeRoom(unless *showing) error {
	read, all := 0, 0
	var oldest *showing
	var of *pool
	for _, p := range k.pools {
		for _, s := range p.showings {
			switch {
			case s.slots == nil || s.ending || s == unless:
			case s.readers > 0:
				read++
				all++
			default:
				all++
				if oldest == nil || s.idle.Before(oldest.idle) {
					oldest, of = s, p
				}
			}
		}
	}
	if read >= mostShown {
		return problemf(volume.ErrUnavailable, "%d images of this node are being read, which is the most at a time: close what is open, "+
			"or wait until others have", read)
	}
	if all >= mostShown {
		k.endShowing(of, oldest)
	}
	return nil
}

// leave notes that a reader has left.
func (k *keeper) leave(p *pool, s *showing) {
	if s.readers--; s.readers > 0 || s.ending {
		return
	}
	if s.slots == nil {
		k.endShowing(p, s)
		return
	}
	s.idle = time.Now()
	root, self := k.Root, k.self
	s.timer = time.AfterFunc(linger, func() { root.Send(self, &lingered{p, s}) })
}

func (k *keeper) lingered(p *pool, s *showing) {
	if s.readers == 0 && time.Since(s.idle) >= linger {
		k.endShowing(p, s)
	}
}

// endShowing lets a goroutine end a showing. The readers that it has were told.
func (k *keeper) endShowing(p *pool, s *showing) {
	if s.ending {
		return
	}
	s.ending = true
	actors.StopTimer(s.timer)
	s.cancel()
	root, self := k.Root, k.self
	go func() { // not a worker: it waits for readers, and those for workers
		if err := actors.Guard(k.Log, s.end); err != nil {
			k.Log.Error(err, "a volume that was read", logkeys.Volume, s.name)
		}
		close(s.gone)
		s.release()
		root.Send(self, &showingEnded{p, s})
	}()
}

// unshow ends the showing of a volume, and returns what is closed when nothing is left of it; nil if there is none.
func (k *keeper) unshow(name string) <-chan struct{} {
	for _, p := range k.pools {
		if s := p.showings[name]; s != nil {
			k.lose(p, problemf(volume.ErrNotRetained, "volume %s is used, or deleted", name), func(of string) bool { return of == name })
			return s.gone
		}
	}
	return nil
}

// forgetShowing forgets a showing of which nothing is left; there may be a later one.
func (r readers) forgetShowing(s *showing) {
	if r.showings[s.name] == s {
		delete(r.showings, s.name)
	}
}
