package ephemeral

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/lib/pace"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/files"
	"github.com/katbox/katbox/messages"
)

// listTime bounds how long List looks for volumes that are selected. It may take longer while calls
// run.
const listTime = time.Second

// List returns a page of the retained volumes, the newest first. It looks at any number of volumes,
// a few at a time, and gives way to calls; after a while it returns what it has found by then.
func (n *Node) List(ctx context.Context, s volume.Selection) (page volume.Page, err error) {
	for limit, began := s.Limit, time.Now(); ; {
		part, err := actors.Ask(ctx, n.Root, n.Supervisor(), &messages.ListRetained{Selection: s})
		if err != nil {
			return volume.Page{}, err
		}
		page = volume.Page{Volumes: append(page.Volumes, part.Volumes...), Next: part.Next}
		if page.Next.IsZero() || len(page.Volumes) >= limit || time.Since(began) >= listTime {
			return page, nil
		}
		s.Limit, s.Before = limit-len(page.Volumes), page.Next
		if err := n.Pace(ctx); err != nil {
			return volume.Page{}, err
		}
	}
}

// Describe returns what is known of a volume, in whatever phase it is. The error is a
// [volume.ErrNotFound] when no such volume is known.
func (n *Node) Describe(ctx context.Context, id volume.ID) (volume.Description, error) {
	return actors.Ask(ctx, n.Root, n.Supervisor(), &messages.DescribeVolume{Routing: n.routing(ctx, id)})
}

// Awake returns the volumes that no list of retained volumes contains: those that are published, or
// are changing.
func (n *Node) Awake(ctx context.Context) ([]volume.Description, error) {
	ids, err := actors.Ask(ctx, n.Root, n.Supervisor(), &messages.ListAwake{})
	if err != nil {
		return nil, err
	}
	awake := make([]volume.Description, 0, len(ids))
	for _, id := range ids {
		described, err := n.Describe(ctx, id)
		switch {
		case err == nil:
			awake = append(awake, described)
		case errors.Is(err, volume.ErrNotFound):
		default:
			return nil, err
		}
	}
	return awake, nil
}

// Read begins to read the files of a retained volume. The error is a [volume.ErrNotFound], a
// [volume.ErrNotRetained] when a pod uses the volume or is about to, or a [volume.ErrGone] when it
// is being deleted.
func (n *Node) Read(ctx context.Context, id volume.ID) (*files.Reading, error) {
	return n.read(ctx, &messages.BeginReading{ID: id})
}

func (n *Node) read(ctx context.Context, begin *messages.BeginReading) (*files.Reading, error) {
	end := func() { n.Root.Send(n.Supervisor(), &messages.EndReading{Begun: begin}) }
	lease, err := actors.Ask(ctx, n.Root, n.Supervisor(), begin)
	if err != nil {
		end() // the answer may come yet
		return nil, err
	}
	reading, err := n.open(lease, end)
	if err != nil {
		end()
	}
	return reading, err
}

// open opens the data directory that a lease is for. What is there is not the volume's any more if
// the lease was lost meanwhile.
func (n *Node) open(lease *messages.Lease, end func()) (*files.Reading, error) {
	tree, err := n.env.Scratch.Tree(lease.Record.Place())
	lost := context.Cause(lease.Lost)
	switch {
	case lost != nil:
		if err == nil {
			tree.Close()
		}
		return nil, lost
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: the data directory of volume %s is missing: %w", volume.ErrGone, lease.Record.ID, err)
	case err != nil:
		return nil, err
	}
	return &files.Reading{
		Volume: lease.Description, Tree: tree, Lost: lease.Lost,
		Pace: n.env.readers.Wait,
		Close: sync.OnceFunc(func() {
			tree.Close()
			end()
		}),
	}, nil
}

// Pace waits while calls run, for a while at most. Its error is that of ctx.
func (n *Node) Pace(ctx context.Context) error { return n.env.calls.Yield(ctx, pace.LongestYield) }

// Usage returns what a volume takes, whatever its phase is: nothing if it only shows the data of another
// one, what its quota counts, or else what a walk finds. The walk calls pace again and again, which may
// wait.
func (n *Node) Usage(ctx context.Context, r volume.Record, pace func(context.Context) error) (volume.Size, error) {
	if r.Attach != (volume.Place{}) {
		return volume.Size{}, nil
	}
	used, _, err := n.env.occupied(ctx, &r, func(ctx context.Context, _ int) error { return pace(ctx) })
	return used, err
}
