package local

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/model/duration"
	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/volume"
	localmessages "github.com/katbox/katbox/messages/local"
)

type (
	// lookDue says that a disk is to be looked at.
	lookDue struct{ pool *pool }
	// looked is what a worker has found.
	looked struct {
		pool *pool
		// at is the directory that was looked at; one that was opened has records, except those that unread tells of.
		at      *opened
		opened  bool
		records []local.Record
		unread  error
		is      local.Pool
		err     error
	}
	// erased says that a worker has erased what was in the trash.
	erased struct {
		pool *pool
		err  error
	}
)

// look lets a worker look at a disk. One that does not come back means that the disk does not answer.
func (k *keeper) look(p *pool) {
	actors.StopTimer(p.timer)
	root, self := k.Root, k.self
	p.timer = time.AfterFunc(k.WatchInterval, func() { root.Send(self, &lookDue{p}) })
	if !p.looking.IsZero() {
		if time.Since(p.looking) >= k.WatchInterval {
			k.fail(p, problemf(volume.ErrUnavailable, "its disk does not answer since %s", duration.When(p.looking)))
		}
		p.again = true
		return
	}
	place, at := p.Place, p.dir
	place.UUID = p.is.UUID
	reread := p.unread != "" && time.Since(p.read) >= rereadInterval
	if reread {
		p.read = time.Now()
	}
	var release func()
	if at != nil {
		release = at.use()
	}
	m := &looked{pool: p, at: at}
	err := actors.InWorker(k.System, func() error {
		k.lookAt(m, place, reread)
		return m.err
	}, func(err error) {
		m.err = err
		if release != nil {
			release()
		}
		root.Send(self, m)
	})
	if err != nil {
		if release != nil {
			release()
		}
		return // the next look is due
	}
	p.looking = time.Now()
}

// rereadInterval is how often records are read again where some could not be.
const rereadInterval = time.Minute

// lookAt looks at the disk of a pool, and opens it where it is not open. reread: some records could not be read.
func (e *environment) lookAt(m *looked, place Place, reread bool) {
	if m.at != nil {
		total, free, err := m.at.Look()
		m.is, m.err = m.at.Describe(), err
		m.is.Total, m.is.Free = total, free
		if errors.Is(err, local.ErrUnwritable) { // what is there can be read, and every change fails by itself
			m.is.Failed, m.err = volume.OneLine(err), nil
		}
		if m.err == nil && reread {
			if _, err := m.at.Records(); err == nil {
				// No operation changes a record while the pool is being opened.
				m.err = errors.New("its records can be read again, it is opened anew")
			}
		}
		return
	}
	ctx, cancel := context.WithTimeout(e.ctx, longestOperation)
	defer cancel()
	dir, err := e.Open(ctx, place)
	if err != nil {
		m.err = err
		return
	}
	e.dirs.Add(1)
	m.opened, m.at, m.is = true, &opened{Dir: dir, closed: e.closed}, dir.Describe()
	m.records, m.unread = dir.Records()
}

func (e *environment) closed(err error) {
	defer e.dirs.Done()
	if err != nil {
		e.Log.Error(err, "close the directory of a pool")
	}
}

func (k *keeper) looked(c actor.Context, m *looked) {
	p := m.pool
	p.looking = time.Time{}
	again := p.again
	p.again = false
	switch {
	case m.err == nil && m.opened:
		m.err = k.take(c, p, m)
		if m.err != nil {
			m.at.leave()
		}
	case m.err == nil:
		p.is.Total, p.is.Free, p.is.Failed = m.is.Total, m.is.Free, m.is.Failed
	case m.opened:
		m.at.leave()
	case p.dir != nil:
		k.recallAll(p, problemf(volume.ErrUnavailable, "the disk of the pool in %s is away", p.Path))
		p.dir.leave()
		p.dir = nil
	}
	if m.err != nil {
		k.fail(p, m.err)
		k.lookAfter(p, retry.Backoff{First: time.Second, Longest: k.WatchInterval, Jitter: 0.1}.After(p.failures))
		return
	}
	if p.failed != "" {
		p.failed, p.failures = "", 0
		k.Log.Info("the pool can be used", "pool", p.is.UUID, "class", p.Class, logkeys.Directory, p.Path, "backend", p.is.Backend)
		if k.Changed != nil {
			k.Changed()
		}
	}
	k.tell(c, p)
	k.count(p)
	k.erase(p)
	if again {
		k.look(p)
	}
}

// tell logs once what a disk that is there fails for.
func (k *keeper) tell(c actor.Context, p *pool) {
	switch p.is.Failed {
	case p.told:
		return
	case "":
		k.Log.Info("the pool works again", "pool", p.is.UUID, logkeys.Directory, p.Path)
		k.finish(c, p)
	default:
		k.Log.Error(errors.New(p.is.Failed), "the pool does not work, trying again until it does", "pool", p.is.UUID, logkeys.Directory, p.Path)
	}
	p.told = p.is.Failed
}

// take begins to use a pool that was opened.
func (k *keeper) take(c actor.Context, p *pool, m *looked) error {
	for _, other := range k.pools {
		if other != p && other.is.UUID == m.is.UUID && other.dir != nil {
			return fmt.Errorf("it has the UUID %s of the pool in %s: one is a copy of the other; remove one of them from --local-pool",
				m.is.UUID, other.Path)
		}
	}
	p.dir, p.is, p.index, p.trash = m.at, m.is, indexOf(m.records), true
	m.records, p.unread, p.read = nil, "", time.Now()
	if m.unread != nil {
		p.unread = volume.OneLine(m.unread)
		k.Log.Error(m.unread, "no volume is made in the pool, because records cannot be read", "pool", p.is.UUID, logkeys.Directory, p.Path)
	}
	for _, other := range k.pools {
		if other != p && other.is.UUID == p.is.UUID { // its disk is mounted here now
			other.is, other.index = local.Pool{}, newIndex()
		}
	}
	k.finish(c, p)
	return nil
}

// finish lets what was left unfinished be finished.
func (k *keeper) finish(c actor.Context, p *pool) {
	volumes, snapshots := p.unfinished()
	if len(volumes)+len(snapshots) > 0 {
		c.Send(c.Parent(), &localmessages.LocalUnfinished{Pool: p.is.UUID, Volumes: volumes, Snapshots: snapshots})
	}
}

// fail notes why a pool cannot be used. The log has each reason once.
func (k *keeper) fail(p *pool, err error) {
	p.failures++
	if text := volume.OneLine(err); text != p.failed {
		p.failed = text
		k.Log.Error(err, "the pool cannot be used, looking for its disk until it is there", "pool", p.is.UUID, "class", p.Class,
			logkeys.Directory, p.Path)
	}
	k.count(p)
}

func (k *keeper) lookAfter(p *pool, wait time.Duration) {
	actors.StopTimer(p.timer)
	root, self := k.Root, k.self
	p.timer = time.AfterFunc(wait, func() { root.Send(self, &lookDue{p}) })
}

// erase lets a worker free the space of what was deleted.
func (k *keeper) erase(p *pool) {
	if p.dir == nil || p.erasing || !p.trash {
		return
	}
	at, release := p.dir, p.dir.use()
	err := actors.InWorker(k.System, func() error { return at.Erase(k.ctx) }, func(err error) {
		release()
		k.Root.Send(k.self, &erased{p, err})
	})
	if err != nil {
		release()
		return // the next look tries again
	}
	p.erasing, p.trash = true, false
}

func (k *keeper) erased(m *erased) {
	p := m.pool
	p.erasing = false
	if m.err != nil {
		p.trash = true // the next look tries again
		if text := volume.OneLine(m.err); text != p.eraseFailed && !errors.Is(m.err, context.Canceled) {
			p.eraseFailed = text
			k.Log.Error(m.err, "space of deleted volumes cannot be freed, trying again until it is", logkeys.Directory, p.Path)
		}
		return
	}
	p.eraseFailed = ""
	if p.trash {
		k.erase(p)
		return
	}
	k.look(p) // there is more room now
}
