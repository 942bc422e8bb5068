package classes

import (
	"fmt"
	"slices"
	"time"

	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// reserve chooses the pool of a new volume and keeps room for it.
func (k *classes) reserve(m *poolmessages.ReservePool) (poolmessages.Reservation, error) {
	c, err := k.find(m.Class)
	switch {
	case err != nil:
		return poolmessages.Reservation{}, volume.Invalid("parameters", "name no class that there is: "+err.Error())
	case c.object.DeletionTimestamp != nil:
		return poolmessages.Reservation{}, fmt.Errorf("%w: PoolClass %s is being deleted", volume.ErrUnavailable, c.object.Name)
	}
	pool, err := k.choose(c.object, m)
	if err != nil {
		return poolmessages.Reservation{}, err
	}
	k.hold(m, pool)
	return k.reservationIn(c.object, pool, m.Kind), nil
}

// hold keeps room for a volume. What the volume took a moment ago, and its array does not count yet, stays kept.
func (k *classes) hold(m *poolmessages.ReservePool, pool string) {
	kept := &reservation{pool: pool, bytes: m.Bytes}
	if before := k.reservations[m.Volume]; before != nil && before.pool == pool && !before.made.IsZero() {
		kept.bytes += before.bytes
	}
	k.reservations[m.Volume] = kept
}

// reservationIn is the answer for a volume of a class.
func (k *classes) reservationIn(c *v1alpha1.PoolClass, pool string, kind pools.Kind) poolmessages.Reservation {
	spec := c.Spec
	protocol := pools.Protocol(spec.Protocol)
	switch {
	case kind == pools.KindLocal:
		protocol = pools.Local
	case protocol == "":
		protocol = pools.NFS
	}
	return poolmessages.Reservation{
		Class: c.Name, Pool: pool, Protocol: protocol, Images: k.pools[pool] != nil && k.pools[pool].Disk.Images,
		Compress: spec.VolumeFlags.Compress, Dedupe: spec.VolumeFlags.Dedupe, Encrypt: spec.VolumeFlags.Encrypt, Extra: spec.VolumeFlags.Extra,
	}
}

// choose returns the pool that takes a volume. One whose array has refused such volumes comes last: that may have been for
// what was wrong with one of them, such as its size.
func (k *classes) choose(c *v1alpha1.PoolClass, m *poolmessages.ReservePool) (string, error) {
	pool, err := k.chooseOf(c, m, false)
	if err == nil {
		return pool, nil
	}
	if pool, last := k.chooseOf(c, m, true); last == nil {
		return pool, nil
	}
	return "", err
}

func (k *classes) chooseOf(c *v1alpha1.PoolClass, m *poolmessages.ReservePool, declining bool) (string, error) {
	groups, err := k.groups(c, m)
	if err != nil {
		return "", err
	}
	kind := volume.ErrNoSpace
	var candidates []pools.Candidate
	for _, group := range groups {
		for _, p := range group {
			one := k.candidateFor(c, p, m, declining)
			if slices.Contains(m.Refused, p.Name) && one.Refuses == "" {
				one.Refuses = "it says that it has no room"
			}
			if why := m.Declined[p.Name]; why != "" {
				one.Refuses, one.Full = "it refuses the volume: "+why, false
			}
			candidates = append(candidates, one)
			if starts(p) {
				kind = volume.ErrUnavailable // it may take the volume soon
			}
		}
	}
	if kept := k.reservations[m.Volume]; kept != nil && kept.bytes == m.Bytes {
		for _, one := range candidates {
			if one.Name == kept.pool && one.Refuses == "" {
				return kept.pool, nil // asked again
			}
		}
	}
	why, left := "", candidates
	var asked [][]pools.Candidate
	for _, group := range groups {
		asked = append(asked, left[:len(group)])
		pool, refused := pools.Allocate(pools.Rule(c.Spec.Allocator), left[:len(group)], m.Bytes)
		if pool != "" {
			return pool, nil
		}
		why, left = joined(why, refused), left[len(group):]
	}
	if why == "" {
		why = noneOf(m)
	}
	return "", &noPool{
		class: c, candidates: asked, kind: kind,
		why: fmt.Sprintf("no pool of PoolClass %s takes a volume of %s: %s", c.Name, array.Size(m.Bytes), why),
	}
}

// noPool is a [volume.ErrNoSpace] that says why for each pool; a [volume.ErrUnavailable] while a pool is not
// known yet.
type noPool struct {
	// class and candidates are those among which none takes the volume, the best ones first.
	class      *v1alpha1.PoolClass
	candidates [][]pools.Candidate
	kind       error
	why        string
}

func (e *noPool) Error() string { return e.why }

func (e *noPool) Is(target error) bool { return target == e.kind }

// release gives room back. What was made is counted until the array was asked anew.
func (k *classes) release(m *poolmessages.ReleasePool) {
	r := k.reservations[m.Volume]
	if m.Gone && (r == nil || r.made.IsZero()) {
		return // the task that makes it gives that back
	}
	if under := k.evictions[m.Volume]; under != nil {
		delete(k.evictions, m.Volume)
		under.m.Fail(fmt.Errorf("%w: the reservation of volume %s was given back", volume.ErrUnavailable, m.Volume))
	}
	switch {
	case r == nil:
	case m.Made:
		r.made = time.Now()
	default:
		delete(k.reservations, m.Volume)
	}
}
