package ephemeral

import (
	"fmt"
	"time"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/lifespan"
	"github.com/katbox/katbox/internal/metrics"
	"github.com/katbox/katbox/internal/volume"
	"github.com/katbox/katbox/messages"
)

// mostPins bounds the pinned volumes of a node, however small they are: each takes some kilobytes of
// memory for who pinned it and why.
const mostPins = 10_000

// errNoPins is why a volume cannot be pinned where the administrator allows no pins.
var errNoPins = fmt.Errorf("%w: no volume can be pinned on this node", volume.ErrCapped)

// pins counts the retained volumes that are pinned, and says whether one more may be. A volume that
// is being published or deleted does not count.
type pins struct {
	metrics *metrics.Metrics
	// max is how much of the file system the pinned volumes may take, which has total bytes; 0 if that
	// is not known yet.
	max   lifespan.Amount
	total int64
	all   map[volume.ID]pinned
	// bytes is the sum of all sizes.
	bytes int64
	// tick sends the owner of all volumes a pinOver. timer, when set, does so at timerAt.
	tick    func()
	timer   *time.Timer
	timerAt time.Time
}

type pinned struct {
	unpublished time.Time
	// bytes is the volume's size; 0 while it is not known.
	bytes int64
	// end is when the pin is over, if that is before the volume's lifespan is; else zero.
	end time.Time
}

// pinOver says that a pin may be over.
type pinOver struct{}

func newPins(limit lifespan.Amount, m *metrics.Metrics) *pins {
	return &pins{metrics: m, max: limit, all: map[volume.ID]pinned{}}
}

// admit returns nil if a volume of that size may be pinned, or is. The room is reserved for it until
// it is set or dropped.
func (p *pins) admit(id volume.ID, size volume.Size) error {
	err := p.admits(id, size)
	if _, is := p.all[id]; err == nil && !is {
		p.put(id, pinned{bytes: size.Bytes})
	}
	return err
}

// admits is admit without the reservation, for a volume that does not sleep.
func (p *pins) admits(id volume.ID, size volume.Size) error {
	if _, is := p.all[id]; is {
		return nil
	}
	limit := int64(p.max.Of(p.total))
	switch {
	case p.max == lifespan.Amount{}:
		return errNoPins
	case p.total == 0:
		return fmt.Errorf("%w: the file system was not measured yet; try again", volume.ErrUnavailable)
	case len(p.all) >= mostPins:
		return fmt.Errorf("%w: %d volumes are pinned on this node, and no more may be", volume.ErrCapped, len(p.all))
	case p.bytes+max(size.Bytes, 1) > limit:
		return fmt.Errorf("%w: volumes of %d bytes are pinned on this node, this one takes %d, and all may take %d (%s of the file system)",
			volume.ErrCapped, p.bytes, size.Bytes, limit, p.max)
	}
	return nil
}

// set notes what is known of a volume that sleeps, or stays retained.
func (p *pins) set(r volume.Record, size volume.Size) {
	if r.Phase != volume.Retained || r.Hold.Kind != volume.Pinned {
		p.drop(r.ID)
		return
	}
	is := pinned{unpublished: r.Unpublished, bytes: size.Bytes}
	if was := p.all[r.ID]; is.bytes == 0 && (was.unpublished.IsZero() || was.unpublished.Equal(r.Unpublished)) {
		is.bytes = was.bytes
	}
	if r.Hold.For < r.Lifespan { // else it is over when the volume goes
		is.end = r.HeldUntil()
		p.setTimer(is.end)
	}
	p.put(r.ID, is)
}

func (p *pins) put(id volume.ID, is pinned) {
	p.bytes += is.bytes - p.all[id].bytes
	p.all[id] = is
	p.show()
}

// drop forgets a volume that is not pinned any more, or is being published or deleted.
func (p *pins) drop(id volume.ID) {
	if was, ok := p.all[id]; ok {
		p.bytes -= was.bytes
		delete(p.all, id)
		p.show()
	}
}

// measured takes over the sizes of volumes.
func (p *pins) measured(m *messages.SizesMeasured) {
	for _, size := range m.Sizes {
		if is, ok := p.all[size.ID]; ok && is.unpublished.Equal(size.Unpublished) {
			is.bytes = size.Size.Bytes
			p.put(size.ID, is)
		}
	}
}

func (p *pins) show() { p.metrics.Pinned(len(p.all), p.bytes) }

// over returns the volumes whose pin is over though their lifespan is not, and sets the timer for the
// next one.
func (p *pins) over(now time.Time) (ids []volume.ID) {
	p.stop()
	for id, is := range p.all {
		switch {
		case is.end.IsZero():
		case is.end.After(now):
			p.setTimer(is.end)
		default:
			ids = append(ids, id)
		}
	}
	return ids
}

// setTimer makes the timer tick no later than at.
func (p *pins) setTimer(at time.Time) {
	if p.timer == nil || at.Before(p.timerAt) {
		actors.StopTimer(p.timer)
		p.timer, p.timerAt = time.AfterFunc(time.Until(at), p.tick), at
	}
}

func (p *pins) stop() {
	actors.StopTimer(p.timer)
	p.timer = nil
}

// endPins lets pressure count again for the volumes whose pin is over. Their records on disk say the
// same: when it ends. A volume that is awake comes back here when it sleeps.
func (v *volumes) endPins() {
	for _, id := range v.pins.over(time.Now()) {
		v.pins.drop(id)
		asleep, ok := v.retention.queue.Look(id)
		if !ok || asleep.Tries > 0 {
			continue
		}
		asleep.Hold = volume.Hold{}
		v.retention.add(resting{record: &asleep.Record, size: asleep.Size})
	}
}
