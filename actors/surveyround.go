package actors

import (
	"context"

	"github.com/katbox/katbox/internal/logkeys"
	"github.com/katbox/katbox/internal/volume"
	"github.com/katbox/katbox/messages"
)

// round is the answer to one Survey, in a worker.
type round struct {
	*surveyor
	backlog bool
	// large: the volume has been measured for a whole batch. Those that are retained
	// meanwhile are not to wait for hours.
	large bool
	send  func(*messages.Surveyed)
	// sizes are those that have not been told yet.
	sizes  []messages.Size
	rested bool
}

// run measures the volumes up to the first rest: what is retained meanwhile goes
// before those that are left.
func (r *round) run(volumes []messages.ToMeasure) {
	defer lowPriority()()
	for i := range volumes {
		v := &volumes[i]
		r.large = false
		takes := r.measure(v)
		if r.ctx.Err() != nil {
			return // the daemon is stopping
		}
		if r.sizes == nil {
			r.sizes = make([]messages.Size, 0, len(volumes)-i)
		}
		r.sizes = append(r.sizes, messages.Size{ID: v.ID, Unpublished: v.Unpublished, Takes: takes})
		if err := r.rest(r.ctx, volumeShare); err != nil {
			return // likewise
		}
		if r.rested {
			break
		}
	}
	r.send(&messages.Surveyed{Sizes: r.sizes, Done: true})
}

func (r *round) measure(v *messages.ToMeasure) (takes volume.Size) {
	err := guard(r.log, func() (err error) {
		takes.Bytes, takes.Inodes, err = r.ground.Usage(r.ctx, v.Place(), r.rest)
		return err
	})
	if err != nil && r.ctx.Err() == nil {
		// Gone meanwhile, most likely. It counts as nothing.
		r.log.V(1).Info("cannot measure a retained volume", logkeys.About(v.Record, "cause", err.Error())...)
	}
	return takes
}

// rest waits after each batch, whichever volumes it was of, and then until no
// calls run. What is known by then is told before. It is a scratch.Pace.
func (r *round) rest(ctx context.Context, seen int) error {
	r.seen += seen
	full, rest := fullBatch, surveyRest
	if r.backlog && !r.large {
		full, rest = backlogBatch, backlogRest
	}
	if r.seen < full {
		return nil
	}
	r.seen, r.rested, r.large = 0, true, true
	if len(r.sizes) > 0 {
		r.send(&messages.Surveyed{Sizes: r.sizes})
		r.sizes = nil
	}
	if err := pause(ctx, rest); err != nil {
		return err
	}
	return r.calls.yield(ctx, longestYield)
}
