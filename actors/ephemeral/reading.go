package ephemeral

import (
	"fmt"
	"slices"
	"time"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/model/lifespan"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/retained"
	"github.com/katbox/katbox/messages"
)

// listSlice is how many volumes a question for a list looks at, which takes less than a
// millisecond: calls wait for the supervisor meanwhile.
const listSlice = 1000

// Asked handles a request that needs no actor, and notes what a request means for those who read
// the volume.
func (v *volumes) Asked(m messages.Request) bool {
	switch m := m.(type) {
	case *messages.PublishVolume:
		if err := v.attach(m.Publication); err != nil {
			m.Fail(err)
			return true
		}
		v.publishes[m.ID] = m
		v.endVisit(m.ID)
		v.pins.drop(m.ID)
		v.leases.lose(m.ID, errPublishedAgain(m.ID))
	case *messages.DescribeVolume:
		if !v.supervisor.IsAwake(m.ID) || v.isVisited(m.ID) {
			m.Send(v.describe(m.ID))
			return true
		}
	case *messages.PurgeVolume:
		return v.purge(m)
	case *messages.HoldVolume:
		return v.hold(m)
	case *messages.OwnVolume:
		return v.tellsOfTenant(m) || v.learn(ownerNews(m))
	case *messages.EndVolume:
		return v.learn(outcomeNews(m))
	}
	return false
}

// Wake hands over the record of a volume that sleeps. A request other than a publish leaves a
// retained volume as it is: readers go on, and it stays in the lists.
func (v *volumes) Wake(m messages.Request) any {
	id := m.Route().ID
	taken, ok := v.retention.take(id)
	if !ok {
		return resting{}
	}
	if _, publish := m.(*messages.PublishVolume); !publish && taken.Phase == volume.Retained {
		v.visited[id] = taken
		v.visits++
	}
	return resting{record: &taken.Record, size: taken.Size}
}

// retainedAs puts a volume into the lists that was retained, or changed, a moment ago. Its actor may have
// more to do, such as to record its owner, and on a slow disk that takes its time.
func (v *volumes) retainedAs(m *messages.RetainedAs) {
	id := m.Record.ID
	last, published := v.publishes[id]
	if _, deleting := v.retention.deleting[id]; deleting || published && last != m.After {
		return
	}
	delete(v.publishes, id)
	visited := v.visited[id]
	if !visited.Unpublished.Equal(m.Record.Unpublished) {
		visited.Size = volume.Size{}
	}
	visited.Record = m.Record
	v.visited[id] = visited
	v.pins.set(m.Record, visited.Size)
	v.visits++
}

// endVisit says that a volume is in the queue again, or is retained no more.
func (v *volumes) endVisit(id volume.ID) {
	delete(v.visited, id)
	v.visits++
}

func (v *volumes) isVisited(id volume.ID) bool {
	_, ok := v.visited[id]
	return ok
}

// look returns what is known of a volume that sleeps, or is visited.
func (v *volumes) look(id volume.ID) (retained.Asleep, bool) {
	if visited, ok := v.visited[id]; ok {
		return visited, true
	}
	return v.retention.queue.Look(id)
}

// tell lets what the queue returns be what people are to see.
func (v *volumes) tell() { v.retention.queue.Follow(v.clock.now()) }

func (v *volumes) describe(id volume.ID) (volume.Description, error) {
	asleep, ok := v.look(id)
	if !ok {
		return volume.Description{}, errNotFound(id)
	}
	return v.description(asleep.Record, asleep.Size, v.retention.factor), nil
}

// description describes a volume under a pressure factor.
func (e *environment) description(r volume.Record, size volume.Size, factor float64) volume.Description {
	r.Published, r.Unpublished = e.clock.told(r.Published).Round(time.Second), e.clock.told(r.Unpublished)
	d := volume.Description{Record: r, Size: size}
	d.LimitNotEnforced = r.Terms.Limit != (volume.Size{}) && !e.Quota.Enforces(r.Project)
	if r.Phase == volume.Retained {
		keep := lifespan.Due(r, e.MinLifespan, factor)
		d.Deadline, d.Early = r.Unpublished.Add(keep), keep < r.Keep()
	}
	return d
}

func errNotFound(id volume.ID) error { return fmt.Errorf("%w: volume %s", volume.ErrNotFound, id) }

func (v *volumes) listRetained(m *messages.ListRetained) {
	v.tell()
	asleep, next := v.retention.queue.Newest(m.Selection, listSlice)
	page := volume.Page{Volumes: make([]volume.Description, 0, len(asleep)), Next: next}
	for _, a := range asleep {
		page.Volumes = append(page.Volumes, v.description(a.Record, a.Size, v.retention.factor))
	}
	v.addVisited(&page, m.Selection)
	m.Send(page, nil)
}

// addVisited puts the visited volumes into a page where they belong.
func (v *volumes) addVisited(page *volume.Page, s volume.Selection) {
	found := len(page.Volumes)
	for _, a := range v.visited {
		a.Unpublished = v.clock.told(a.Unpublished)
		if s.Selects(a.Record) && (page.Next.IsZero() || a.Key().Compare(page.Next) > 0) {
			page.Volumes = append(page.Volumes, v.description(a.Record, a.Size, v.retention.factor))
		}
	}
	if len(page.Volumes) == found {
		return
	}
	slices.SortFunc(page.Volumes, func(a, b volume.Description) int { return b.Record.Key().Compare(a.Record.Key()) })
	if len(page.Volumes) > s.Limit {
		page.Volumes = page.Volumes[:s.Limit]
		page.Next = page.Volumes[s.Limit-1].Record.Key()
	}
}

// listAwake leaves out the volumes that are in the lists.
func (v *volumes) listAwake(m *messages.ListAwake) {
	m.Send(slices.DeleteFunc(v.supervisor.Awake(), v.isVisited), nil)
}

func (v *volumes) beginReading(m *messages.BeginReading) {
	asleep, known := v.look(m.ID)
	_, deleting := v.retention.deleting[m.ID]
	switch {
	case v.ctx.Err() != nil:
		m.Fail(actors.ErrStopping)
	case known && asleep.Phase == volume.Retained:
		v.leases.grant(m, v.description(asleep.Record, asleep.Size, v.retention.factor))
	case known, deleting:
		m.Fail(fmt.Errorf("%w: volume %s is being deleted", volume.ErrGone, m.ID))
	case v.supervisor.IsAwake(m.ID):
		m.Fail(errInUse(m.ID))
	default:
		m.Fail(errNotFound(m.ID))
	}
}
