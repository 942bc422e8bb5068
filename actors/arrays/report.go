package arrays

import (
	"context"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/messages"
)

// report writes into a PoolAttachment whether its session carries I/O. What fails is repeated, with what is
// true by then.
type report struct {
	*environment
	actors.Simple
	attachment string
	// active is what was reported last to this actor; due: the API server does not have it yet.
	active, due bool
}

// Take notes what is true now.
func (r *report) Take(m messages.Request) {
	if m, ok := m.(*messages.ReportSession); ok {
		r.active, r.due = m.Active, true
	}
}

// Plan returns the operation that a request asks for.
func (r *report) Plan(m messages.Request) *actors.Operation {
	if _, ok := m.(*messages.ReportSession); !ok {
		return nil
	}
	return r.write()
}

// Rest returns the operation that repeats a report that has failed.
func (r *report) Rest() *actors.Operation {
	if !r.due {
		return nil
	}
	return r.write()
}

func (r *report) write() *actors.Operation {
	active := r.active
	return &actors.Operation{
		Name: "report",
		Same: func(m messages.Request) bool {
			o, ok := m.(*messages.ReportSession)
			return ok && o.Active == active
		},
		Behind: func(messages.Request) bool { return true },
		Run: func(ctx context.Context) actors.Outcome {
			err := r.Cluster.ReportSession(ctx, r.attachment, active)
			return actors.Outcome{Err: err, Unfinished: err}
		},
		Then: func(e *actors.Outcome) {
			if e.Err == nil && r.active == active {
				r.due = false
			}
		},
	}
}
