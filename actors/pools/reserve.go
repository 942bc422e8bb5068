package pools

import (
	"fmt"
	"time"

	"github.com/katbox/katbox/internal/pools"
	"github.com/katbox/katbox/internal/pools/v1alpha1"
	"github.com/katbox/katbox/internal/volume"
	"github.com/katbox/katbox/messages"
)

// reserve chooses the pool of a new volume and keeps room for it.
func (k *classes) reserve(m *messages.ReservePool) (messages.Reservation, error) {
	c, err := k.find(m.Class)
	switch {
	case err != nil && m.Decided:
		// The class has gone since; the volume is made as its resource says.
		k.reservations[m.Volume] = &reservation{pool: m.Pool, bytes: m.Bytes}
		return messages.Reservation{Class: m.Class, Pool: m.Pool}, nil
	case err != nil:
		return messages.Reservation{}, volume.Invalid("parameters", "name no class that there is: "+err.Error())
	case c.object.DeletionTimestamp != nil && !m.Decided:
		return messages.Reservation{}, fmt.Errorf("%w: PoolClass %s is being deleted", volume.ErrUnavailable, c.object.Name)
	}
	pool, err := k.choose(c.object, m)
	if err != nil {
		return messages.Reservation{}, err
	}
	k.reservations[m.Volume] = &reservation{pool: pool, bytes: m.Bytes}
	spec := c.object.Spec
	protocol := pools.Protocol(spec.Protocol)
	if protocol == "" {
		protocol = pools.NFS
	}
	return messages.Reservation{
		Class: c.object.Name, Pool: pool, Protocol: protocol,
		Compress: spec.VolumeFlags.Compress, Dedupe: spec.VolumeFlags.Dedupe, Encrypt: spec.VolumeFlags.Encrypt, Extra: spec.VolumeFlags.Extra,
	}, nil
}

// choose returns the pool that takes a volume.
func (k *classes) choose(c *v1alpha1.PoolClass, m *messages.ReservePool) (string, error) {
	if m.Decided {
		return m.Pool, nil
	}
	var candidates []pools.Candidate
	elsewhere, kind := "", volume.ErrNoSpace
	for _, p := range k.members(c.Name) {
		if m.Pool == "" || p.name == m.Pool {
			candidates = append(candidates, k.candidate(p, m.Volume))
			if p.starts() {
				kind = volume.ErrUnavailable // it may take the volume soon
			}
		}
	}
	if m.Pool != "" && len(candidates) == 0 {
		elsewhere = fmt.Sprintf("the source is in pool %s, which is none of PoolClass %s", m.Pool, c.Name)
		return "", volume.Invalid("volume_content_source", elsewhere)
	}
	if kept := k.reservations[m.Volume]; kept != nil && kept.bytes == m.Bytes {
		for _, one := range candidates {
			if one.Name == kept.pool && one.Refuses == "" {
				return kept.pool, nil // asked again
			}
		}
	}
	pool, why := pools.Allocate(pools.Rule(c.Spec.Allocator), candidates, m.Bytes)
	if pool != "" {
		return pool, nil
	}
	if why == "" {
		why = "it has no pools"
	}
	return "", &noPool{kind, fmt.Sprintf("no pool of PoolClass %s takes a volume of %d GiB: %s", c.Name, m.Bytes>>30, why)}
}

// noPool is a [volume.ErrNoSpace] that says why for each pool; a [volume.ErrUnavailable] while a pool is not
// known yet.
type noPool struct {
	kind error
	why  string
}

func (e *noPool) Error() string        { return e.why }
func (e *noPool) Is(target error) bool { return target == e.kind }

// release gives room back. What was made is counted until the array was asked anew.
func (k *classes) release(m *messages.ReleasePool) {
	r := k.reservations[m.Volume]
	switch {
	case r == nil:
	case m.Made:
		r.made = time.Now()
	default:
		delete(k.reservations, m.Volume)
	}
}
