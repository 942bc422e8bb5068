package main

import (
	"context"
	"time"
)

const (
	// lossTime is how long lists go on after a replica was lost, lossLimit how soon one has to be whole again.
	lossTime  = 30 * time.Second
	lossLimit = 10 * time.Second
)

// loss kills a replica while lists are made, and starts it anew. A list that fails or that lacks nodes is nothing lost: it is made
// again. The API server is told at once that the replica is not there, as the readiness of a pod does within seconds.
func (s *story) loss(ctx context.Context) error {
	if s.o.replicas == 1 {
		return nil
	}
	had, err := s.gateways[0].counts(ctx)
	if err != nil {
		return err
	}
	if err := s.gateways[0].kill(); err != nil {
		return err
	}
	if err := s.server.leave(ctx, 0); err != nil {
		return err
	}
	began := time.Now()
	var lists, failed, lacking int
	var whole, longest time.Duration
	for time.Since(began) < lossTime {
		p, _, took, err := s.get(ctx, group+"/retainedvolumes?limit=500")
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			failed++
		case s.whole(s.all())(p) != nil:
			lacking++
		default:
			longest = max(longest, took)
			if whole == 0 {
				whole = time.Since(began)
			}
		}
		lists++
	}
	s.want(whole > 0 && whole <= lossLimit, "after the loss of a replica a list is whole within %.1f s of at most %.0f s; of %d lists in "+
		"%.0f s %d failed and %d lacked nodes; the longest whole one took %.2f s", whole.Seconds(), lossLimit.Seconds(), lists,
		lossTime.Seconds(), failed, lacking, longest.Seconds())
	if err := s.back(ctx, s.gateways[0], had.here); err != nil {
		return err
	}
	if err := s.server.join(ctx, s.o, 0, s.gateways[0].apiPort); err != nil {
		return err
	}
	return s.ready(ctx)
}
