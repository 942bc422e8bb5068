package main

import (
	"context"
	"fmt"
	"time"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/soak/internal/pause"
)

// sameLife is how far apart the times of two tombstones may be that are of one life
// of a volume: after a boot the daemon may tell the time a little differently.
const sameLife = 100 * time.Millisecond

// buried is the name that a tombstone has in the daemon's list.
type buried struct {
	id       string
	retained time.Time
}

// checkTombstones reports volumes that are gone and have no tombstone, and those
// that have two of the same life: a tombstone comes with the commit that forgets the
// volume, or neither does. All volumes are over.
func (c *checker) checkTombstones(ctx context.Context, n *node, limit time.Time) error {
	client := api.Dial(n.layout.Admin)
	defer client.Close()
	for {
		list, err := tombstones(ctx, client)
		if err != nil {
			return fmt.Errorf("tombstones of node %s: %w", n.name, err)
		}
		missing, twice := compare(c.promised(n), list)
		if len(missing) > 0 && time.Now().Before(limit) {
			// The last one comes a commit after the rename.
			if err := pause.For(ctx, eagerPause); err != nil {
				return err
			}
			continue
		}
		for _, f := range missing {
			c.findings.befell(f, "it is gone, and the daemon remembers nothing of it")
		}
		for _, f := range twice {
			c.findings.befell(f, "it went once, and the daemon remembers that twice")
		}
		return nil
	}
}

// promised are the volumes of a node whose record was durable, by their ID.
func (c *checker) promised(n *node) map[string]*follower {
	all := make(map[string]*follower)
	for _, f := range c.followers {
		if f.node == n && f.Markers() > 0 {
			all[f.ID] = f
		}
	}
	return all
}

func tombstones(ctx context.Context, client *api.Client) (list []buried, err error) {
	var q api.GoneQuery
	for {
		limited, cancel := context.WithTimeout(ctx, callLimit)
		page, err := client.Gone(limited, q)
		cancel()
		if err != nil {
			return nil, err
		}
		for _, g := range page.Items {
			b := buried{id: g.ID}
			if g.RetainedAt != nil {
				b.retained = *g.RetainedAt
			}
			list = append(list, b)
		}
		if q.Continue = page.Continue; q.Continue == 0 {
			return list, nil
		}
	}
}

// compare returns the volumes that have no tombstone, and those that have two of one
// life.
func compare(volumes map[string]*follower, list []buried) (missing, twice []*follower) {
	lives := make(map[string][]time.Time)
	for _, b := range list {
		for _, other := range lives[b.id] {
			if f := volumes[b.id]; f != nil && b.retained.Sub(other).Abs() < sameLife {
				twice = append(twice, f)
			}
		}
		lives[b.id] = append(lives[b.id], b.retained)
	}
	for id, f := range volumes {
		if len(lives[id]) == 0 {
			missing = append(missing, f)
		}
	}
	return missing, twice
}
