package classes

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/lifespan"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

const (
	// endsAtOnce is how many retained volumes of a pool are deleted at the same time: an array takes few requests
	// at once, and others are waiting.
	endsAtOnce = 4
	// endAgainAfter is how long after a failure a retained volume is tried again.
	endAgainAfter = time.Minute
	// longestNap bounds how long the retention sleeps.
	longestNap = time.Hour
)

// retention has all retained volumes, and says which of them go next. It does no I/O.
//
// A volume goes at since + lifespan x the pressure factor of its pool. The wall clock is read once, when the
// volume is seen first; from then on a step of it moves no deadline.
type retention struct {
	volumes map[string]*keptVolume
	pools   map[string]*keptPool
	// next is ordered by the deadlines without pressure.
	next deadlines
}

// keptVolume is a retained volume.
type keptVolume struct {
	name, pool string
	size       int64
	// written is when it was retained, as the resource says; since is the same by the clock that never steps.
	written, since time.Time
	lifespan       time.Duration
	// ending: it is being deleted. postponed is until when it is left alone, after a failure.
	ending    bool
	postponed time.Time
	// index is its place among the deadlines.
	index int
}

func (v *keptVolume) deadline(factor float64) time.Time {
	return lifespan.Deadline(v.since, v.lifespan, factor)
}

// keptPool are the retained volumes of a pool, and how the pool is.
type keptPool struct {
	volumes map[string]*keptVolume
	// usable: its array can be asked to delete something.
	usable bool
	factor float64
	// free and wanted are bytes: with less free than wanted, volumes go earlier.
	free, wanted int64
	// relief are volumes that went early since the array was asked how much is free, or are on their way.
	relief map[string]relief
	ending int
	proof
}

// relief is room that a volume leaves.
type relief struct {
	bytes int64
	// trial: it goes to make room, which it is judged by.
	trial bool
	// done is when the volume was gone; zero until then.
	done time.Time
}

func newRetention() *retention {
	return &retention{volumes: map[string]*keptVolume{}, pools: map[string]*keptPool{}}
}

func (r *retention) pool(name string) *keptPool {
	p := r.pools[name]
	if p == nil {
		p = &keptPool{volumes: map[string]*keptVolume{}, relief: map[string]relief{}, factor: 1}
		r.pools[name] = p
	}
	return p
}

// set takes over a retained volume.
func (r *retention) set(m *poolmessages.VolumeRetained, now time.Time) {
	v := r.volumes[m.Name]
	if v != nil && v.pool != m.Pool {
		r.remove(m.Name)
		v = nil
	}
	if v == nil {
		v = &keptVolume{name: m.Name, pool: m.Pool, index: -1}
		r.volumes[m.Name] = v
		r.pool(m.Pool).volumes[m.Name] = v
	}
	if !v.written.Equal(m.Since) {
		// The age is by the wall clock, and never negative: a volume rather stays than goes early.
		v.written, v.since = m.Since, now.Add(-max(now.Round(0).Sub(m.Since.Round(0)), 0))
	}
	if v.lifespan != m.Lifespan {
		v.postponed = time.Time{}
	}
	v.size, v.lifespan = m.Size, m.Lifespan
	if v.index < 0 {
		heap.Push(&r.next, v)
	} else {
		heap.Fix(&r.next, v.index)
	}
}

// remove forgets a volume that is not retained any more. Room that it leaves counts until the array was asked anew.
func (r *retention) remove(name string) {
	v := r.volumes[name]
	if v == nil {
		return
	}
	heap.Remove(&r.next, v.index)
	delete(r.volumes, name)
	p := r.pools[v.pool]
	delete(p.volumes, name)
	if v.ending {
		p.ending--
	}
}

// learn takes over how a pool is, and how many bytes new volumes have taken of what came free. It reports whether nothing
// goes early there from now on, because that makes no room.
func (r *retention) learn(m *poolmessages.PoolReport, taken int64) (stopped bool) {
	p := r.pool(m.Name)
	if p.onTrial() > 0 {
		p.yield.Came.Bytes += max(m.On.Available-p.free+taken, 0)
	}
	p.usable = m.State == v1alpha1.PoolReady || m.State == v1alpha1.PoolFailed || m.State == v1alpha1.PoolDeleting
	p.factor, p.free, p.wanted = factorOf(m), m.On.Available, roomWanted(m)
	for name, left := range p.relief {
		if left.done.IsZero() || !m.Measured.After(left.done) {
			continue
		}
		if left.trial {
			p.yield.Shown(volume.Size{Bytes: left.bytes, Inodes: 1})
		}
		delete(p.relief, name)
	}
	return p.judge(m.Measured)
}

// forget forgets a pool that there is no more. Its volumes' resources go by themselves.
func (r *retention) forget(name string) {
	p := r.pools[name]
	if p == nil {
		return
	}
	for volume := range p.volumes {
		r.remove(volume)
	}
	delete(r.pools, name)
}

// begin notes that a volume is being deleted, and whether it is judged by the room that this makes.
func (r *retention) begin(v *keptVolume, trial bool) {
	p := r.pools[v.pool]
	v.ending = true
	p.ending++
	p.relief[v.name] = relief{bytes: v.size, trial: trial}
}

// ended notes what came of the deletion of a volume.
func (r *retention) ended(name, pool string, ok bool, now time.Time) {
	p := r.pools[pool]
	if p == nil {
		return
	}
	if left, known := p.relief[name]; known && ok {
		left.done = now
		p.relief[name] = left
	} else {
		delete(p.relief, name)
	}
	v := r.volumes[name]
	switch {
	case v == nil:
	case ok:
		r.remove(name)
	default:
		v.ending, v.postponed = false, now.Add(endAgainAfter)
		p.ending--
	}
}

// relieved is the room that volumes leave which the array does not count as free yet.
func (p *keptPool) relieved() (bytes int64) {
	for _, left := range p.relief {
		bytes += left.bytes
	}
	return bytes
}

// evictable returns the volumes that may go for another one, the oldest first, and their size. The other one may be
// a retained volume that grows while it is given back, which was retained until a moment ago.
func (p *keptPool) evictable(now time.Time, other string) (all []*keptVolume, bytes int64) {
	for _, v := range p.volumes {
		if v.name != other && v.ready(now) {
			all, bytes = append(all, v), bytes+v.size
		}
	}
	slices.SortFunc(all, func(a, b *keptVolume) int { return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.name, b.name)) })
	return all, bytes
}

// ready reports whether a volume can be deleted now, as far as that is known.
func (v *keptVolume) ready(now time.Time) bool { return !v.ending && !now.Before(v.postponed) }

// end is a retained volume that is to go.
type end struct {
	*keptVolume
	// early: its lifespan is not over.
	early bool
}

// due returns the volumes that go now, and when to look again.
func (r *retention) due(now time.Time) (all []end, again time.Time) {
	again = now.Add(longestNap)
	sooner := func(t time.Time) {
		if t.After(now) && t.Before(again) {
			again = t
		}
	}
	count := map[string]int{}
	take := func(v *keptVolume, early bool) bool {
		p := r.pools[v.pool]
		switch {
		case !p.usable || v.ending:
			return false
		case !v.ready(now):
			sooner(v.postponed)
			return false
		case p.ending+count[v.pool] >= endsAtOnce:
			return false // the end of another one is the next look
		}
		count[v.pool]++
		all = append(all, end{v, early})
		return true
	}
	for _, v := range r.next.until(now) {
		take(v, false)
	}
	if len(r.next) > 0 {
		sooner(r.next.first(now))
	}
	for _, p := range r.pools {
		if p.factor >= 1 || !p.usable {
			continue
		}
		for _, v := range p.pressed(now, sooner) {
			if !take(v, true) {
				break
			}
		}
	}
	return all, again
}

// pressed returns those volumes of a pool under pressure that go before their lifespan is over: the oldest, and
// no more than leave the room that is wanted. What is left then goes after the next look at the array, if it is
// still needed; so does what may go only once it is known that those before make room.
func (p *keptPool) pressed(now time.Time, sooner func(time.Time)) (all []*keptVolume) {
	if p.futile(now) {
		sooner(p.again)
		return nil
	}
	for _, v := range p.volumes {
		at := v.deadline(p.factor)
		switch {
		case at.After(now):
			sooner(at)
		case v.deadline(1).After(now) && !v.ending:
			all = append(all, v)
		}
	}
	slices.SortFunc(all, func(a, b *keptVolume) int {
		return cmp.Or(a.deadline(p.factor).Compare(b.deadline(p.factor)), a.since.Compare(b.since), cmp.Compare(a.name, b.name))
	})
	left := p.relieved()
	short := p.wanted - p.free - left
	if short <= 0 && left == 0 {
		short = 1 // the array calls itself full all the same
	}
	may := p.mayGo()
	for i, v := range all {
		if short <= 0 || may == 0 {
			return all[:i]
		}
		if v.ready(now) {
			short -= v.size
			may--
		}
	}
	return all
}

// deadlines is a heap of volumes by the end of their lifespan.
type deadlines []*keptVolume

func (d deadlines) Len() int { return len(d) }

func (d deadlines) Less(i, j int) bool { return d[i].deadline(1).Before(d[j].deadline(1)) }

func (d deadlines) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].index, d[j].index = i, j
}

// Push is for package heap.
func (d *deadlines) Push(v any) {
	kept := v.(*keptVolume)
	kept.index = len(*d)
	*d = append(*d, kept)
}

// Pop is for package heap.
func (d *deadlines) Pop() any {
	last := (*d)[len(*d)-1]
	(*d)[len(*d)-1] = nil
	*d = (*d)[:len(*d)-1]
	last.index = -1
	return last
}

// until returns the volumes whose lifespan is over, the one first that has waited longest.
func (d deadlines) until(now time.Time) (all []*keptVolume) {
	d.walk(0, func(v *keptVolume) bool {
		if v.deadline(1).After(now) {
			return false
		}
		all = append(all, v)
		return true
	})
	slices.SortFunc(all, func(a, b *keptVolume) int {
		return cmp.Or(a.deadline(1).Compare(b.deadline(1)), cmp.Compare(a.name, b.name))
	})
	return all
}

// first returns the next deadline after a time.
func (d deadlines) first(now time.Time) (at time.Time) {
	d.walk(0, func(v *keptVolume) bool {
		deadline := v.deadline(1)
		if deadline.After(now) {
			if at.IsZero() || deadline.Before(at) {
				at = deadline
			}
			return false
		}
		return true
	})
	return at
}

// walk visits a part of the heap, and below a volume only if visit returns true for it.
func (d deadlines) walk(i int, visit func(*keptVolume) bool) {
	if i >= len(d) || !visit(d[i]) {
		return
	}
	d.walk(2*i+1, visit)
	d.walk(2*i+2, visit)
}

// factorOf is the pressure factor of a pool: by its free share between the thresholds alert and emergency. An array
// that tells its own mode knows better whether there is any pressure.
func factorOf(f *poolmessages.PoolReport) float64 {
	if f.On.Total <= 0 {
		return 1
	}
	factor := lifespan.ShareFactor(float64(f.On.Available)/float64(f.On.Total), f.Thresholds.Alert, f.Thresholds.Emergency)
	switch f.On.Mode {
	case array.Normal:
		return 1
	case array.Alert:
		return min(factor, 2./3)
	case array.Protected:
		return min(factor, 1./3)
	case array.Emergency:
		return 0
	}
	return factor
}

// roomWanted is the bytes that are free above the threshold alert.
func roomWanted(f *poolmessages.PoolReport) int64 {
	return int64(f.Thresholds.Alert * float64(f.On.Total))
}
