package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/local"
	"github.com/katbox/katbox/internal/logkeys"
	"github.com/katbox/katbox/internal/volume"
	"github.com/katbox/katbox/messages"
)

// keeper knows all pools of the node: whether their disks are there, and what is promised on them. It does no I/O
// itself: each look at a disk runs in a worker, one at a time for each.
type keeper struct {
	*environment
	self  *actor.PID
	pools []*pool
	// slots has one for each image that is mounted for readers.
	slots chan struct{}
}

// pool is one directory that a pool is in, or was.
type pool struct {
	Place
	// dir is nil while the disk is away.
	dir *opened
	// is describes the pool; its UUID is empty before the disk was there for the first time.
	is local.Pool
	*index
	// failed says why the pool cannot be used.
	failed string
	// unread says which records cannot be read, if there are such: what is promised is not known then. read is when
	// that was last tried.
	unread string
	read   time.Time
	// looking is since when a worker has been looking at the disk; zero while none is. again: it is to be looked at
	// once more after that.
	looking time.Time
	again   bool
	timer   *time.Timer
	// failures counts the looks in a row that failed.
	failures int
	// erasing: a worker frees the space of what was deleted. trash: there is something to erase.
	erasing, trash bool
	// eraseFailed is what the log has of erasing.
	eraseFailed string
	// readings are those of its volumes, by what asked for them.
	readings map[*messages.ReadLocal]reading
	// showings are what was made readable of its volumes, by their names.
	showings map[string]*showing
}

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

func keeperProps(env *environment) *actor.Props {
	k := &keeper{environment: env, slots: make(chan struct{}, mostShown)}
	for _, place := range env.Places {
		k.pools = append(k.pools, &pool{
			Place: place, is: local.Pool{UUID: place.UUID}, index: newIndex(), failed: "its disk was not looked at yet",
			readings: map[*messages.ReadLocal]reading{}, showings: map[string]*showing{},
		})
	}
	return actor.PropsFromFunc(k.Receive, actor.WithReceiverMiddleware(actors.Recovering(env.Log)), actors.AtOnce)
}

func (k *keeper) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		k.self = c.Self()
		for _, p := range k.pools {
			k.look(p)
		}
	case *actor.Stopping:
		k.stop()
	case *lookDue:
		k.look(m.pool)
	case *looked:
		k.looked(c, m)
	case *erased:
		k.erased(m)
	case *messages.LocalPools:
		m.Send(k.describe(m), nil)
	case *messages.UseLocal:
		m.Send(k.use(m))
	case *messages.ReserveLocal:
		m.Send(struct{}{}, k.change(m.Pool, func(p *pool) error { return p.promise(m.Record) }))
	case *messages.ClaimLocal:
		m.Send(struct{}{}, k.change(m.Pool, func(p *pool) error { defer k.recall(p, m.Name); return p.claim(m.Name) }))
	case *messages.SettleLocal:
		// An index is read anew with its disk.
		_ = k.change(m.Pool, func(p *pool) error { p.settle(m.Record); k.recall(p, m.Record.Name); return nil })
	case *messages.ForgetLocal:
		_ = k.change(m.Pool, func(p *pool) error {
			p.forget(m.Name)
			k.recall(p, m.Name)
			p.trash = true
			k.erase(p)
			return nil
		})
	case *messages.ListLocal:
		k.list(m)
	case *messages.RetainedLocal:
		m.Send(k.retained(), nil)
	case *messages.ReadLocal:
		m.Send(k.read(m))
	case *messages.EndReadLocal:
		k.endReading(m.Begun)
	case *messages.UnshowLocal:
		m.Send(k.unshow(m.Name), nil)
	case *lingered:
		k.lingered(m.pool, m.showing)
	case *shownNoMore:
		if m.pool.showings[m.name] == m.showing {
			delete(m.pool.showings, m.name)
		}
	default:
		actors.IgnoreLifecycle(k.Log, c)
	}
}

// stop closes what is open.
func (k *keeper) stop() {
	for _, p := range k.pools {
		actors.StopTimer(p.timer)
		if p.dir != nil {
			k.recallAll(p, problemf(volume.ErrUnavailable, "the daemon stops"))
			p.dir.leave()
			p.dir = nil
		}
	}
}

// find returns the pool with a UUID.
func (k *keeper) find(uuid string) *pool {
	for _, p := range k.pools {
		if p.is.UUID == uuid && uuid != "" {
			return p
		}
	}
	return nil
}

// change changes what is known of a pool. The error is [volume.ErrUnavailable] where there is no such pool.
func (k *keeper) change(uuid string, do func(*pool) error) error {
	p := k.find(uuid)
	if p == nil {
		return noPool(uuid)
	}
	err := do(p)
	k.count(p)
	return err
}

func noPool(uuid string) error {
	return problemf(volume.ErrUnavailable, "no disk of this node has the pool %s: if its disk was moved, give the daemon there its directory "+
		"with --local-pool; if it is away, connect and mount it", uuid)
}

// away says what is wrong with a pool, and what to do.
func (p *pool) away() error {
	return problemf(volume.ErrUnavailable, "the pool in %s cannot be used: %s; connect and mount its disk, and it is back within seconds",
		p.Path, p.failed)
}

// promise promises room to a record, if what is promised already is known.
func (p *pool) promise(r local.Record) error {
	if e, ok := p.entries[r.Name]; p.unread != "" && (!ok || e.size < r.Size) {
		return problemf(volume.ErrUnavailable, "%s cannot be made or grow: what the pool in %s has promised is not known, because of records "+
			"that cannot be read: %s", r.Name, p.Path, p.unread)
	}
	return p.reserve(r, p.is.Total)
}

func (k *keeper) use(m *messages.UseLocal) (u messages.UsableLocal, err error) {
	p := k.find(m.Pool)
	if m.Pool == "" {
		p, err = k.whereIs(m.Name)
	} else if p == nil {
		err = noPool(m.Pool)
	}
	if err != nil {
		return u, err
	}
	if p.dir == nil || p.failed != "" {
		return u, p.away()
	}
	return messages.UsableLocal{Dir: p.dir, UUID: p.is.UUID, Release: p.dir.use()}, nil
}

// whereIs returns the pool that has a volume.
func (k *keeper) whereIs(name string) (*pool, error) {
	var away *pool
	for _, p := range k.pools {
		if _, ok := p.entries[name]; ok {
			return p, nil
		}
		if p.dir == nil || p.unread != "" {
			away = p
		}
	}
	if away != nil && away.dir == nil { // it may be there
		return nil, away.away()
	}
	if away != nil {
		return away, nil // its record may be one that could not be read
	}
	return nil, problemf(volume.ErrNotFound, "no pool of this node has a volume %s", name)
}

func (k *keeper) list(m *messages.ListLocal) {
	p := k.find(m.Pool)
	switch {
	case p == nil:
		m.Fail(noPool(m.Pool))
	case p.dir == nil || p.failed != "":
		m.Fail(p.away())
	case m.Only != "" && p.unread != "":
		m.Send([]messages.LocalName{{Name: m.Only, HasSnapshots: p.snapshots[m.Only] > 0}}, nil) // its record tells
	case m.Only != "":
		m.Send(p.only(m.Only), nil)
	case p.unread != "": // a caller would take what is missing for gone
		m.Fail(problemf(volume.ErrUnavailable, "the pool in %s cannot be listed: records cannot be read: %s", p.Path, p.unread))
	default:
		m.Send(p.list(m.After, m.Snapshots, m.Limit), nil)
	}
}

// describe describes the pools that were there, or those that are usable, or all directories.
func (k *keeper) describe(m *messages.LocalPools) []local.Pool {
	all := []local.Pool{}
	for _, p := range k.pools {
		if (p.is.UUID != "" || m.Missing) && (!m.Usable || p.failed == "") {
			all = append(all, p.described())
		}
	}
	return all
}

func (p *pool) described() local.Pool {
	is := p.is
	is.Class, is.Path, is.Provisioned = p.Class, p.Path, p.promised
	if problem := cmp.Or(p.failed, p.unread); problem != "" {
		is.Failed = problem
	}
	return is
}

func (k *keeper) count(p *pool) { k.Metrics.LocalPool(p.described(), p.counts, p.failed == "") }

// look lets a worker look at a disk. One that does not come back means that the disk does not answer.
func (k *keeper) look(p *pool) {
	actors.StopTimer(p.timer)
	root, self := k.Root, k.self
	p.timer = time.AfterFunc(k.WatchInterval, func() { root.Send(self, &lookDue{p}) })
	if !p.looking.IsZero() {
		if time.Since(p.looking) >= k.WatchInterval {
			k.fail(p, problemf(volume.ErrUnavailable, "its disk does not answer since %s", p.looking.Format(time.RFC3339)))
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
	err := k.Workers.Go(func() {
		m := &looked{pool: p, at: at}
		if err := actors.Guard(k.Log, func() error { k.lookAt(m, place, reread); return nil }); err != nil {
			m.err = err
		}
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
		m.is = m.at.Describe()
		m.is.Total, m.is.Free, m.err = m.at.Look()
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
		p.is.Total, p.is.Free = m.is.Total, m.is.Free
	case m.opened:
		m.at.leave()
	case p.dir != nil:
		k.recallAll(p, problemf(volume.ErrUnavailable, "the disk of the pool in %s is away", p.Path))
		p.dir.leave()
		p.dir = nil
	}
	if m.err != nil {
		k.fail(p, m.err)
		k.lookAfter(p, actors.Backoff{First: time.Second, Longest: k.WatchInterval}.After(p.failures))
		return
	}
	if p.failed != "" {
		p.failed, p.failures = "", 0
		k.Log.Info("the pool can be used", "pool", p.is.UUID, "class", p.Class, logkeys.Directory, p.Path, "backend", p.is.Backend)
		if k.Changed != nil {
			k.Changed()
		}
	}
	k.count(p)
	k.erase(p)
	if again {
		k.look(p)
	}
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
	volumes, snapshots := p.unfinished()
	if len(volumes)+len(snapshots) > 0 {
		c.Send(c.Parent(), &messages.LocalUnfinished{Pool: p.is.UUID, Volumes: volumes, Snapshots: snapshots})
	}
	return nil
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
	root, self, ctx := k.Root, k.self, k.ctx
	err := k.Workers.Go(func() {
		err := actors.Guard(k.Log, func() error { return at.Erase(ctx) })
		release()
		root.Send(self, &erased{p, err})
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
