package ephemeral

import (
	"context"
	"fmt"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/metrics"
	"github.com/katbox/katbox/messages"
)

// leases are the permissions to read retained volumes that have been given to readers. A lease ends
// when its reader gives it back, or is lost when the volume is published again or deleted.
type leases struct {
	// ctx ends when the daemon stops, and all leases with it.
	ctx     context.Context
	metrics *metrics.Metrics
	// held has the leases of each volume, by the questions that they answer.
	held map[volume.ID]map[*messages.BeginReading]context.CancelCauseFunc
}

func newLeases(ctx context.Context, m *metrics.Metrics) *leases {
	return &leases{ctx: ctx, metrics: m, held: map[volume.ID]map[*messages.BeginReading]context.CancelCauseFunc{}}
}

// grant answers a question with a lease.
func (l *leases) grant(m *messages.BeginReading, described volume.Description) {
	lost, end := context.WithCancelCause(l.ctx)
	if l.held[m.ID] == nil {
		l.held[m.ID] = map[*messages.BeginReading]context.CancelCauseFunc{}
	}
	l.held[m.ID][m] = end
	l.metrics.LeaseGranted()
	m.Send(&messages.Lease{Description: described, Lost: lost}, nil)
}

// holds reports whether the lease that answers a question is held.
func (l *leases) holds(begun *messages.BeginReading) bool {
	_, held := l.held[begun.ID][begun]
	return held
}

// giveBack ends a lease. It does nothing if the lease was lost or given back before.
func (l *leases) giveBack(begun *messages.BeginReading) {
	if end, ok := l.held[begun.ID][begun]; ok {
		l.end(begun, end, context.Canceled)
	}
}

// lose ends all leases on a volume.
func (l *leases) lose(id volume.ID, cause error) {
	for begun, end := range l.held[id] {
		l.end(begun, end, cause)
	}
}

// loseToArchive ends the leases on a volume that is read for the archive.
func (l *leases) loseToArchive(id volume.ID, cause error) {
	for begun, end := range l.held[id] {
		if begun.ToArchive {
			l.end(begun, end, cause)
		}
	}
}

func (l *leases) end(begun *messages.BeginReading, end context.CancelCauseFunc, cause error) {
	end(cause)
	delete(l.held[begun.ID], begun)
	if len(l.held[begun.ID]) == 0 {
		delete(l.held, begun.ID)
	}
	l.metrics.LeaseEnded()
}

// errInUse is why a volume that a pod uses can be neither read nor removed.
func errInUse(id volume.ID) error {
	return fmt.Errorf("%w: volume %s is published, or is changing", volume.ErrNotRetained, id)
}

// errPublishedAgain is why the leases on a volume are lost when it is published.
func errPublishedAgain(id volume.ID) error {
	return fmt.Errorf("%w: volume %s is published again", volume.ErrNotRetained, id)
}

// errDeleted is why a volume cannot be read that was ordered to be deleted.
func errDeleted(id volume.ID, reason volume.Reason) error {
	return fmt.Errorf("%w: volume %s was deleted (%s)", volume.ErrGone, id, volume.ReasonInWords(reason.String()))
}
