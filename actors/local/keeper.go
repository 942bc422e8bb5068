package local

import (
	"cmp"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/volume"
	localmessages "github.com/katbox/katbox/messages/local"
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
	// failed says why the pool cannot be used. told is what the log has of is.Failed, for which a disk that is there fails.
	failed, told string
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
	readers
}

func keeperProps(env *environment) *actor.Props {
	k := &keeper{environment: env, slots: make(chan struct{}, mostShown)}
	for _, place := range env.Places {
		k.pools = append(k.pools, &pool{
			Place: place, is: local.Pool{UUID: place.UUID}, index: newIndex(), failed: "its disk was not looked at yet",
			readers: newReaders(),
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
	case *localmessages.LocalPools:
		m.Send(k.describe(m), nil)
	case *localmessages.UseLocal:
		m.Send(k.use(m))
	case *localmessages.ReserveLocal:
		m.Send(struct{}{}, k.change(m.Pool, func(p *pool) error { return p.promise(m.Record) }))
	case *localmessages.ClaimLocal:
		m.Send(struct{}{}, k.change(m.Pool, func(p *pool) error { defer k.recall(p, m.Name); return p.claim(m.Name) }))
	case *localmessages.SettleLocal:
		// An index is read anew with its disk.
		_ = k.change(m.Pool, func(p *pool) error { p.settle(m.Record); k.recall(p, m.Record.Name); return nil })
	case *localmessages.ForgetLocal:
		_ = k.change(m.Pool, func(p *pool) error {
			p.forget(m.Name)
			k.recall(p, m.Name)
			p.trash = true
			k.erase(p)
			return nil
		})
	case *localmessages.ListLocal:
		k.list(m)
	case *localmessages.RetainedLocal:
		m.Send(k.retained(), nil)
	case *localmessages.ReadLocal:
		m.Send(k.read(m))
	case *localmessages.EndReadLocal:
		k.endReading(m.Begun)
	case *localmessages.UnshowLocal:
		m.Send(k.unshow(m.Name), nil)
	case *lingered:
		k.lingered(m.pool, m.showing)
	case *showingEnded:
		m.pool.forgetShowing(m.showing)
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

func (k *keeper) use(m *localmessages.UseLocal) (u localmessages.UsableLocal, err error) {
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
	return localmessages.UsableLocal{Dir: p.dir, UUID: p.is.UUID, Release: p.dir.use()}, nil
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

func (k *keeper) list(m *localmessages.ListLocal) {
	p := k.find(m.Pool)
	switch {
	case p == nil:
		m.Fail(noPool(m.Pool))
	case p.dir == nil || p.failed != "":
		m.Fail(p.away())
	case m.Only != "" && p.unread != "":
		m.Send([]localmessages.LocalName{{Name: m.Only, HasSnapshots: p.snapshots[m.Only] > 0}}, nil) // its record tells
	case m.Only != "":
		m.Send(p.only(m.Only), nil)
	case p.unread != "": // a caller would take what is missing for gone
		m.Fail(problemf(volume.ErrUnavailable, "the pool in %s cannot be listed: records cannot be read: %s", p.Path, p.unread))
	default:
		m.Send(p.list(m.After, m.Snapshots, m.Limit), nil)
	}
}

// describe describes the pools that were there, or those that are usable, or all directories.
func (k *keeper) describe(m *localmessages.LocalPools) []local.Pool {
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

func (k *keeper) count(p *pool) {
	k.Metrics.LocalPool(p.described(), p.counts, p.failed == "" && p.is.Failed == "")
}
