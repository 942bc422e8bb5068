package reader

import (
	"context"
	"time"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/soak/internal/check"
	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/pause"
)

const (
	// tombstonesWithin is how long after the last volume has gone its tombstone may be
	// missing: it comes a commit after the rename.
	tombstonesWithin = 10 * time.Second
	tombstonesAgain  = 100 * time.Millisecond
	// tombstonesAPage is how many are asked for at a time; a run has more.
	tombstonesAPage = 37
	// reason is what a person gives as the reason of a decision.
	reason = "the soak"
)

// Pin keeps a volume for a time from now on, as a person does.
func (r *Reader) Pin(ctx context.Context, v *history.Volume, length time.Duration) {
	until, end := r.cfg.Checker.BeginPin(v, length)
	if ctx.Err() != nil || end == nil {
		return
	}
	limited, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	_, err := r.client.Pin(limited, v.ID, until, reason)
	if ctx.Err() == nil {
		end(failure(err), err)
	}
}

// Release lets a volume go, as a person does.
func (r *Reader) Release(ctx context.Context, v *history.Volume) {
	end := r.cfg.Checker.BeginRelease(v)
	if ctx.Err() != nil || end == nil {
		return
	}
	limited, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	_, err := r.client.Release(limited, v.ID, reason)
	if ctx.Err() == nil {
		end(failure(err), err)
	}
}

// CheckGone compares the driver's list of the volumes that are gone with what became
// of them, once all are.
func (r *Reader) CheckGone(ctx context.Context) error {
	for began := time.Now(); ; {
		list, err := r.gone(ctx)
		last := time.Since(began) > tombstonesWithin
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil && (r.cfg.Checker.CheckGone(list, last) == 0 || last):
			if !last {
				r.cfg.Checker.CheckGone(list, true)
			}
			return nil
		case err != nil && last:
			r.cfg.Findings.Add(history.Tombstones, nil, "the list of the volumes that are gone: "+err.Error())
			return nil
		}
		if err := pause.For(ctx, tombstonesAgain); err != nil {
			return err
		}
	}
}

// gone returns what the driver remembers, the last one first.
func (r *Reader) gone(ctx context.Context) (list []check.Buried, err error) {
	q := api.GoneQuery{Query: api.Query{Limit: tombstonesAPage}}
	for {
		limited, cancel := context.WithTimeout(ctx, requestLimit)
		page, err := r.client.Gone(limited, q)
		cancel()
		if err != nil {
			return nil, err
		}
		for _, g := range page.Items {
			list = append(list, check.Buried{ID: g.ID, Namespace: g.Namespace, Pod: g.Pod, PodUID: g.PodUID, Reason: g.Reason})
		}
		if page.Continue == 0 {
			return list, nil
		}
		q.Continue = page.Continue
	}
}
