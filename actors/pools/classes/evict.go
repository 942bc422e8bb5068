package classes

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// evictions bounds how often retained volumes are evicted for one reservation: others may take what comes free.
const evictions = 3

// eviction is a reservation that waits until retained volumes have left its room.
type eviction struct {
	m *poolmessages.ReservePool
	// waiting are the retained volumes; failed is why one of them stays.
	waiting map[string]bool
	failed  error
	tries   int
}

// answer answers a question for room: at once, or once retained volumes have left it.
func (k *classes) answer(c actor.Context, m *poolmessages.ReservePool, tries int) {
	if under := k.evictions[m.Volume]; under != nil {
		under.m.Fail(fmt.Errorf("%w: the volume was asked for again", volume.ErrBusy))
		under.m = m
		return
	}
	got, err := k.reserve(m)
	if err == nil {
		m.Send(got, nil)
		return
	}
	full, ok := errors.AsType[*noPool](err)
	if !ok || !errors.Is(err, volume.ErrNoSpace) {
		m.Fail(err)
		return
	}
	if tries >= evictions {
		m.Fail(fmt.Errorf("%w: retained volumes were evicted to make room, which others have taken; try again", volume.ErrUnavailable))
		return
	}
	pool, going, trial := "", []*keptVolume(nil), false
	for _, candidates := range full.candidates {
		if pool, going, trial = k.yields(full.class, candidates, m); pool != "" {
			break
		}
	}
	if pool == "" {
		m.Fail(err)
		return
	}
	k.hold(m, pool)
	under := &eviction{m: m, waiting: map[string]bool{}, tries: tries + 1}
	k.evictions[m.Volume] = under
	for name, v := range k.retention.pools[pool].volumes {
		if v.ending && name != m.Volume {
			under.waiting[name] = true
		}
	}
	why := fmt.Sprintf("a new volume, %s, needs the room in pool %s", m.Volume, pool)
	if m.Growth {
		why = fmt.Sprintf("volume %s needs the room in pool %s to grow", m.Volume, pool)
	}
	for _, v := range going {
		under.waiting[v.name] = true
		k.end(c, v, trial, pools.Evicted, why)
	}
	k.proceed(c, under)
}

// yields returns the pool that takes a volume once some of its retained volumes are gone, and which those are:
// the oldest, just enough. full: bytes are lacking there, and not what may be promised alone.
func (k *classes) yields(class *v1alpha1.PoolClass, candidates []pools.Candidate, m *poolmessages.ReservePool) (
	pool string, going []*keptVolume, full bool,
) {
	now := time.Now()
	var able []pools.Candidate
	needs, fulls := map[string]int64{}, map[string]bool{}
	for _, one := range candidates {
		kept := k.retention.pools[one.Name]
		refused := slices.Contains(m.Refused, one.Name)
		if one.Refuses != "" && !one.Full && !refused || kept == nil {
			continue
		}
		_, evictable := kept.evictable(now, m.Volume)
		if m.Growth {
			one.Headroom = 0
		}
		need := one.Lacking(m.Bytes) - kept.relieved()
		fulls[one.Name] = refused || one.Full || m.Bytes > one.Available-one.Headroom-one.Reserved
		if fulls[one.Name] && (kept.futile(now) || kept.mayGo() == 0) {
			continue // what goes makes no room there, or it is not known yet
		}
		if one.Full && !m.Growth {
			need = max(need, kept.wanted-kept.free-kept.relieved())
		}
		switch {
		case refused && m.Growth:
			need = max(need, 1)
		case refused:
			need = max(need, m.Bytes-kept.relieved(), 1)
		}
		if need > evictable {
			continue
		}
		needs[one.Name] = need
		one.Refuses = ""
		lacking := max(one.Lacking(m.Bytes), 0)
		one.Available, one.Provisioned = one.Available+lacking, one.Provisioned-lacking
		able = append(able, one)
	}
	pool, _ = pools.Allocate(pools.Rule(class.Spec.Allocator), able, m.Bytes)
	if pool == "" {
		return "", nil, false
	}
	all, _ := k.retention.pools[pool].evictable(now, m.Volume)
	need := needs[pool]
	for i, v := range all {
		if need <= 0 {
			return pool, all[:i], fulls[pool]
		}
		need -= v.size
	}
	return pool, all, fulls[pool]
}

// madeRoom tells those who wait for it that a retained volume is gone, or stays.
func (k *classes) madeRoom(c actor.Context, m *retainedEnded) {
	for _, under := range k.evictions {
		if !under.waiting[m.name] {
			continue
		}
		delete(under.waiting, m.name)
		if m.err != nil {
			under.failed = m.err
		}
		k.proceed(c, under)
	}
}

// proceed answers a reservation that waits for no retained volume any more. Where one of them stays, another may go.
func (k *classes) proceed(c actor.Context, under *eviction) {
	if len(under.waiting) > 0 {
		return
	}
	delete(k.evictions, under.m.Volume)
	if under.failed != nil {
		delete(k.reservations, under.m.Volume)
		k.answer(c, under.m, under.tries)
		return
	}
	kept := k.reservations[under.m.Volume]
	class, err := k.find(under.m.Class)
	if err != nil || kept == nil {
		delete(k.reservations, under.m.Volume)
		under.m.Fail(fmt.Errorf("%w: the class or the pool of volume %s has gone; try again", volume.ErrUnavailable, under.m.Volume))
		return
	}
	under.m.Send(k.reservationIn(class.object, kept.pool, under.m.Kind), nil)
}
