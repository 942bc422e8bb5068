package ephemeral

import (
	"fmt"
	"time"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/model/lifespan"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/metrics"
	"github.com/katbox/katbox/messages"
)

// mostPins bounds the volumes of a node that are pinned or attached, however small they are: each takes
// some kilobytes of memory for who decided that and why.
const mostPins = 10_000

// errNoPins is why a volume cannot be pinned where the administrator allows no pins.
var errNoPins = fmt.Errorf("%w: no volume can be pinned on this node", volume.ErrCapped)

// pins counts the retained volumes that are pinned or attached, and says whether one more may be: neither
// makes room for others, so they share one bound. A volume that is being published or deleted is not
// pinned.
type pins struct {
	metrics *metrics.Metrics
	// max is how much of the file system they may take, which has total bytes; 0 if that is not known yet.
	max   lifespan.Amount
	total int64
	all   map[volume.ID]pin
	// bytes is the sum of all sizes. pinned and attached count each kind, and a volume may be both.
	bytes            int64
	pinned, attached tally
	// tick sends the owner of all volumes a pinOver. timer, when set, does so at timerAt.
	tick    func()
	timer   *time.Timer
	timerAt time.Time
}

// pin is what makes no room for others, and why.
type pin struct {
	pinned, attached bool
	// namespace is the volume's, for one that is attached.
	namespace   string
	unpublished time.Time
	// size is zero while it is not known.
	size volume.Size
	// end is when the pin is over, if that is before the volume's lifespan is; else zero.
	end time.Time
}

// tally counts volumes.
type tally struct {
	volumes int
	bytes   int64
}

func (t *tally) add(volumes int, bytes int64) { t.volumes, t.bytes = t.volumes+volumes, t.bytes+bytes }

// pinOver says that a pin may be over.
type pinOver struct{}

func newPins(limit lifespan.Amount, m *metrics.Metrics) *pins {
	return &pins{metrics: m, max: limit, all: map[volume.ID]pin{}}
}

// admit returns nil if a volume of that size may be pinned, or is. The room is reserved for it until
// it is set or dropped.
func (p *pins) admit(id volume.ID, size volume.Size) error {
	err := p.admits(id, size)
	if is, known := p.all[id]; err == nil && !is.pinned {
		if is.pinned = true; !known {
			is.size = size
		}
		p.put(id, is)
	}
	return err
}

// admits is admit without the reservation, for a volume that does not sleep.
func (p *pins) admits(id volume.ID, size volume.Size) error {
	if p.max == (lifespan.Amount{}) {
		return errNoPins
	}
	return p.room(id, size, volume.ErrCapped)
}

// room returns nil if there is room for a volume of that size, or it has that already. Its error is refused
// if there is none.
func (p *pins) room(id volume.ID, size volume.Size, refused error) error {
	if _, is := p.all[id]; is {
		return nil
	}
	limit := int64(p.max.Of(p.total))
	switch {
	case p.total == 0:
		return fmt.Errorf("%w: the file system was not measured yet; try again", volume.ErrUnavailable)
	case len(p.all) >= mostPins:
		return fmt.Errorf("%w: %d volumes are pinned or attached on this node, and no more may be", refused, len(p.all))
	case p.bytes+max(size.Bytes, 1) > limit:
		return fmt.Errorf("%w: volumes of %d bytes are pinned or attached on this node, this one takes %d, "+
			"and all may take %d (%s of the file system)",
			refused, p.bytes, size.Bytes, limit, p.max)
	}
	return nil
}

// set notes what is known of a volume that sleeps, or stays retained.
func (p *pins) set(r volume.Record, size volume.Size) {
	was, known := p.all[r.ID]
	is := pin{attached: was.attached, namespace: was.namespace, unpublished: r.Unpublished, size: size}
	if r.Phase == volume.Retained && r.Hold.Kind == volume.Pinned {
		is.pinned = true
		if r.Hold.For < r.Lifespan { // else it is over when the volume goes
			is.end = r.HeldUntil()
			p.setTimer(is.end)
		}
	}
	if size == (volume.Size{}) && (was.unpublished.IsZero() || was.unpublished.Equal(r.Unpublished)) {
		is.size = was.size
	}
	if known || is.pinned {
		p.put(r.ID, is)
	}
}

// put notes what a volume is now. One that is neither pinned nor attached is forgotten.
func (p *pins) put(id volume.ID, is pin) {
	p.count(p.all[id], -1)
	p.count(is, 1)
	if is.pinned || is.attached {
		p.all[id] = is
	} else {
		delete(p.all, id)
	}
	p.show()
}

func (p *pins) count(is pin, by int) {
	bytes := int64(by) * is.size.Bytes
	if is.pinned {
		p.pinned.add(by, bytes)
	}
	if is.attached {
		p.attached.add(by, bytes)
	}
	if is.pinned || is.attached {
		p.bytes += bytes
	}
}

// drop forgets the pin of a volume that is not pinned any more, or is being published or deleted.
func (p *pins) drop(id volume.ID) {
	if is, ok := p.all[id]; ok {
		is.pinned, is.end = false, time.Time{}
		p.put(id, is)
	}
}

// measured takes over the sizes of volumes.
func (p *pins) measured(m *messages.SizesMeasured) {
	for _, size := range m.Sizes {
		if is, ok := p.all[size.ID]; ok && is.unpublished.Equal(size.Unpublished) {
			is.size = size.Size
			p.put(size.ID, is)
		}
	}
}

func (p *pins) show() {
	p.metrics.Pinned(p.pinned.volumes, p.pinned.bytes)
	p.metrics.Attached(p.attached.volumes, p.attached.bytes)
}

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
		known, rests := v.look(id)
		if !rests || known.Tries > 0 || v.supervisor.IsAwake(id) {
			continue
		}
		known.Hold = volume.Hold{}
		v.index.Put(known.Record)
		v.retention.deleteDue()
	}
}
