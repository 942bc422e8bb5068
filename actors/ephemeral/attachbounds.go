package ephemeral

import (
	"fmt"
	"math"
	"time"

	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/duration"
	"github.com/katbox/katbox/internal/model/lifespan"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/retained"
)

// What a pod has attached stays as long as the pod does: it cannot be deleted to make room. So it has the bounds of a
// pin, and those of its namespace:
//
//   - attached and pinned volumes share Config.MaxPinned and [mostPins]. One that is not measured counts once
//     it is, and a namespace may have one such attached;
//   - what a namespace has attached is a part of what it retains, and no more than Config.MaxRetained;
//   - attaching keeps a volume beyond its lifespan for Config.MaxPin at most. A pod that has it for longer
//     keeps it, which is counted, and afterwards it has no further grace.

// errNoAttach is why a volume cannot be attached where the administrator allows no pins.
var errNoAttach = fmt.Errorf("%w: no volume can be attached on this node, where --max-pin or --max-pinned is 0", volume.ErrNotAttached)

// reserveAttach takes the room for a volume that is to be attached, until [pins.detach]. The error is why there
// is none.
func (v *volumes) reserveAttach(source retained.Known) error {
	if v.MaxPin <= 0 || v.MaxPinned == (lifespan.Amount{}) {
		return errNoAttach
	}
	if err := v.pins.room(source.ID, source.Size, volume.ErrNotAttached); err != nil {
		return fmt.Errorf("volume %s: %w", source.ID, err)
	}
	is, unmeasured := v.pins.attachedOf(source.Namespace)
	if source.Size == (volume.Size{}) && unmeasured {
		return fmt.Errorf("%w: it is not known yet what volume %s takes, nor what another one takes that the namespace has attached; try again",
			volume.ErrBusy, source.ID)
	}
	if v.MaxRetained != nil {
		may, sum := v.MaxRetained(source.Namespace), is.Add(source.Size)
		if may.Bytes > 0 && sum.Bytes > may.Bytes || may.Inodes > 0 && sum.Inodes > may.Inodes {
			return fmt.Errorf("%w: with volume %s the namespace would have %d bytes and %d inodes attached on this node, "+
				"more than its maxRetained; end another pod that has a volume attached",
				volume.ErrNotAttached, source.ID, sum.Bytes, sum.Inodes)
		}
	}
	v.pins.attach(source.Record, source.Size)
	return nil
}

// attachedOf returns what a namespace has attached, and whether a volume is among that whose size is not known.
func (p *pins) attachedOf(namespace string) (sum volume.Size, unmeasured bool) {
	for _, is := range p.all {
		if is.attached && is.namespace == namespace {
			sum = sum.Add(is.size)
			unmeasured = unmeasured || is.size == volume.Size{}
		}
	}
	return sum, unmeasured
}

// attach notes that a pod has a volume attached.
func (p *pins) attach(source volume.Record, size volume.Size) {
	is, known := p.all[source.ID]
	is.attached, is.namespace = true, source.Namespace
	if !known {
		is.unpublished, is.size = source.Unpublished, size
	}
	p.put(source.ID, is)
}

// detach notes that no pod has the volume attached any more.
func (p *pins) detach(source volume.ID) {
	if is, ok := p.all[source]; ok {
		is.attached = false
		p.put(source, is)
	}
}

// attachAll takes over what pods have attached at a start.
func (v *volumes) attachAll() {
	v.retention.attachAll(v.recovered)
	for i := range v.recovered {
		by := &v.recovered[i]
		if by.Attach == (volume.Place{}) {
			continue
		}
		source, ok := v.look(by.Attach.ID)
		if !ok { // its pod is back, or its record is lost
			source.Record = volume.Record{ID: by.Attach.ID, Namespace: by.Namespace}
		}
		v.pins.attach(source.Record, source.Size)
	}
}

// attachedSince is since when a pod has a volume attached that a start has found. The record has the time on the
// wall clock; nothing is deleted by it.
func attachedSince(by volume.Record, now time.Time) time.Time {
	if by.Published.IsZero() {
		return now
	}
	return now.Add(-max(now.Sub(by.Published), 0))
}

// tellLate counts the volumes that pods have attached for longer than a volume may be pinned. Each is logged
// once.
func (v *volumes) tellLate() {
	late := 0
	for id, is := range v.retention.attached.held {
		since := time.Since(is.since)
		if since <= v.MaxPin {
			continue
		}
		late++
		if !is.late {
			is.late = true
			v.retention.attached.held[id] = is
			v.Log.Info("a pod has a retained volume attached for longer than --max-pin; the volume stays until the pod ends",
				logkeys.About(is.by, "attached", v.retention.attached.sources[is.by.ID].String(), "for", duration.Format(since.Round(time.Second)))...)
		}
	}
	v.Metrics.AttachedLate(late)
}

// mostAttached is how long after its unpublish a volume may be kept because pods attach it.
func (e *environment) mostAttached(r volume.Record) time.Duration {
	most := e.keeps(r)
	if r.Hold.Kind == volume.Pinned {
		most = max(most, r.Hold.For)
	}
	return min(most, math.MaxInt64-e.MaxPin) + e.MaxPin
}
