package ephemeral

import (
	"fmt"
	"slices"
	"time"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/model/lifespan"
	"github.com/katbox/katbox/internal/model/volume"
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
		v.index.Publish(m.Publication.Place(), m)
		v.pins.drop(m.ID)
		v.leases.lose(m.ID, errPublishedAgain(m.ID))
	case *messages.DescribeVolume:
		m.Send(v.describe(m.ID))
		return true
	case *messages.PurgeVolume:
		return v.purge(m)
	case *messages.HoldVolume:
		return v.hold(m)
	case *messages.OwnVolume:
		v.passToLogs(m.Pod, m.ID, func(r messages.Routing) messages.Request {
			return &messages.OwnVolume{Routing: r, Pod: m.Pod, Owner: m.Owner}
		})
		return v.tellsOfTenant(m) || v.learn(ownerNews(m))
	case *messages.EndVolume:
		v.passToLogs(m.Pod, m.ID, func(r messages.Routing) messages.Request {
			return &messages.EndVolume{Routing: r, Pod: m.Pod, Outcome: m.Outcome}
		})
		return v.learn(outcomeNews(m))
	case *messages.ArchivedVolume:
		return v.archived(m)
	case *messages.KeepLogs:
		return v.keepLogs(m)
	case *messages.KeepEnd:
		return v.keepEnd(m)
	}
	return false
}

// Wake hands over the record of a volume that sleeps. It stays in the lists, and readers go on, unless the request is a
// publish.
func (v *volumes) Wake(m messages.Request) any {
	id := m.Route().ID
	known, ok := v.index.Look(id)
	if !ok {
		return resting{}
	}
	v.index.Wake(id)
	v.retention.changed()
	return resting{record: &known.Record, size: known.Size}
}

// tell lets what the index returns be what people are to see.
func (v *volumes) tell() { v.index.Follow(v.clock.now()) }

// describe tells what is known of a volume, as it was before an operation that runs; except that a retained volume
// that is to be published is not retained any more.
func (v *volumes) describe(id volume.ID) (volume.Description, error) {
	known, ok := v.index.Look(id)
	if !ok {
		return volume.Description{}, errNotFound(id)
	}
	if known.Wanted && known.Phase == volume.Retained {
		known.Phase = volume.Publishing
	}
	return v.description(known.Record, known.Size, v.retention.factor), nil
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
	newest, next := v.index.Newest(m.Selection, listSlice)
	page := volume.Page{Volumes: make([]volume.Description, 0, len(newest)), Next: next}
	for _, known := range newest {
		page.Volumes = append(page.Volumes, v.description(known.Record, known.Size, v.retention.factor))
	}
	m.Send(page, nil)
}

// listAwake leaves out the volumes that are in the lists.
func (v *volumes) listAwake(m *messages.ListAwake) {
	m.Send(slices.DeleteFunc(v.supervisor.Awake(), v.index.IsListed), nil)
}

func (v *volumes) beginReading(m *messages.BeginReading) {
	known, rests := v.look(m.ID)
	switch {
	case v.ctx.Err() != nil:
		m.Fail(actors.ErrStopping)
	case rests && known.Phase == volume.Retained:
		v.leases.grant(m, v.description(known.Record, known.Size, v.retention.factor))
	case rests, known.Going:
		m.Fail(fmt.Errorf("%w: volume %s is being deleted", volume.ErrGone, m.ID))
	case v.supervisor.IsAwake(m.ID):
		m.Fail(errInUse(m.ID))
	default:
		m.Fail(errNotFound(m.ID))
	}
}
