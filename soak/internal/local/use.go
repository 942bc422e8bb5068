package local

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"

	"github.com/katbox/katbox/soak/internal/synced"
	"github.com/katbox/katbox/soak/story"
)

// mostSnapshots is how many snapshots a volume has.
const mostSnapshots = 2

// Use is a volume that a pod has.
type Use struct {
	*Player
	*volume
	pod, target string
	random      *rand.Rand
}

// Begin gives a volume to a pod: a new one, or one that another pod had. It returns nil when there is no room.
func (p *Player) Begin(ctx context.Context, pod string, random *rand.Rand) (*Use, error) {
	classes := p.classes()
	v, err := p.choose(ctx, classes[random.IntN(len(classes))], random)
	if err != nil || v == nil {
		return nil, err
	}
	u := &Use{Player: p, volume: v, pod: pod, random: random}
	if u.target, err = p.give(ctx, v, pod); err != nil {
		return nil, err
	}
	return u, u.Verify()
}

// Work is what a pod does with its volume, and its user meanwhile.
func (u *Use) Work(ctx context.Context) error {
	for range 1 + u.random.IntN(3) {
		if err := u.write(); err != nil {
			return err
		}
	}
	switch u.random.IntN(4) {
	case 0:
		return u.grow(ctx)
	case 1:
		if u.is[u.class].Copies {
			return u.copy(ctx)
		}
	}
	return nil
}

// Verify fails if something is not there that was synced.
func (u *Use) Verify() error { return u.verify(u.told(), u.target) }

func (u *Use) write() error {
	content := u.contentOf(u.told())
	k := content[len(content)-1].n + 1
	if err := synced.Write(u.target, fileName(u.name, k), u.name, k); err != nil {
		return err
	}
	return u.tell(story.Event{What: story.Wrote, Volume: u.told(), N: k})
}

// grow makes the volume larger.
func (u *Use) grow(ctx context.Context) error {
	e := story.Event{What: story.Grow, Volume: u.told(), N: int(u.size + growth)}
	grown, err := u.change(ctx, e, story.Grown, http.MethodPut, u.pathOf(u.volume)+"/size", newSize{u.size + growth})
	if isNoSpace(err) {
		return nil
	}
	if err != nil {
		return err
	}
	u.size = grown.Size
	size, err := u.expand(ctx, u.volume, u.pod, u.size)
	if err == nil && size < u.size {
		err = fmt.Errorf("%s was expanded to %d bytes, and has %d", u.name, u.size, size)
	}
	return err
}

// copy takes a snapshot, and mostly makes a volume from that or from this one.
func (u *Use) copy(ctx context.Context) error {
	name := u.newName("snap")
	e := story.Event{What: story.Create, Volume: nameOf(u.class, snapshots, name), N: int(u.size), Text: u.told()}
	_, err := u.change(ctx, e, story.Created, http.MethodPost, "/"+u.is[u.class].UUID+"/snapshots", newSnapshot{name, u.name})
	if isNoSpace(err) {
		return nil
	}
	if err != nil {
		return err
	}
	u.snapshots = append(u.snapshots, name)
	from := source{Snapshot: name}
	switch u.random.IntN(3) {
	case 0:
		return nil
	case 1:
		from = source{Volume: u.name}
	}
	clone, err := u.make(ctx, u.class, u.size+int64(u.random.IntN(2)*growth), from)
	if err != nil || clone == nil {
		return err
	}
	u.wait(clone)
	return nil
}

// End takes the volume from the pod. It is kept for another one, retained, or deleted.
func (u *Use) End(ctx context.Context) error {
	if err := u.leave(ctx, u.volume, u.pod); err != nil {
		return err
	}
	u.mu.Lock()
	full := len(u.idle[u.class]) >= mostIdle
	u.mu.Unlock()
	for len(u.snapshots) > mostSnapshots {
		if err := u.deleteSnapshot(ctx, u.volume); err != nil {
			return err
		}
	}
	switch choice := u.random.IntN(4); {
	case choice < 2 || full:
		return u.delete(ctx, u.volume)
	case choice == 2:
		if err := u.retain(ctx, u.volume); err != nil {
			return err
		}
	}
	u.wait(u.volume)
	return nil
}
