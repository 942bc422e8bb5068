package ephemeral

import (
	"fmt"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/retained"
	"github.com/katbox/katbox/messages"
)

// Names of the single actors.
const (
	diskName  = "disk"
	sizesName = "sizes"
)

// podsBatch is how many volumes look for their pods in a row, which takes less than a millisecond:
// there may be thousands, and calls wait for the supervisor.
const podsBatch = 128

// volumes owns all volumes of the node, in one index. Those that are awake have an actor beside it, the others
// sleep. It is the supervisor's [actors.Kind], and acts only in the supervisor's turn.
type volumes struct {
	*environment
	supervisor *actors.Supervisor
	retention  *retention
	disk       *disk
	sizes      *sizes
	leases     *leases
	pins       *pins
	tenantPods *tenantPods
	logs       *logs
	// index has all volumes, from the first publish to the tombstone.
	index *retained.Index
	// recovered are the volumes that are awake at the start, pinned those that are pinned then.
	recovered, pinned []volume.Record
	// setPodsError takes why the kubelet's pods cannot be seen; nil when they can.
	setPodsError func(error)
	// toldToArchive is what the index said when Config.ToArchive was called last.
	toldToArchive uint64
	// sawNoPods: the kubelet's pods directory was empty when last read.
	sawNoPods bool
	// more is for tests.
	more []actor.ReceiverMiddleware
}

// resting is what is kept of a volume that has no actor.
type resting struct {
	// record is nil when nothing is known of the volume.
	record *volume.Record
	// failed is why its deletion, which was tried last, did not succeed; nil when none was. tries
	// is how often in a row.
	failed error
	tries  int
	// size is what a volume that wakes takes, if that is known.
	size volume.Size
}

// podsLeft is what is left to do of a PodsSeen.
type podsLeft struct {
	seen    *messages.PodsSeen
	volumes []volume.ID
}

// Start spawns the single actors and those of the volumes that are awake.
func (v *volumes) Start(s *actors.Supervisor) {
	v.supervisor = s
	v.retention.tick = func(m any) { v.Root.Send(s.Self(), m) }
	v.retention.measureDisk = func() { v.Root.Send(v.diskActor, &messages.MeasureDisk{}) }
	v.retention.measureSizes = func(m *messages.MeasureSizes) { v.Root.Send(v.Single(sizesName), m) }
	v.retention.delete = func(chosen retained.Known, m *messages.DeleteVolume) {
		v.leases.lose(chosen.ID, errDeleted(chosen.ID, m.Reason))
		v.pins.drop(chosen.ID)
		s.Wake(chosen.ID, resting{record: &chosen.Record, size: chosen.Size}, m)
	}
	v.pins.tick = func() { v.Root.Send(s.Self(), &pinOver{}) }
	for i := range v.pinned {
		v.pins.set(v.pinned[i], volume.Size{})
	}
	v.pinned = nil
	s.Spawn(diskName, v.disk.props())
	s.Spawn(sizesName, v.sizes.props())
	v.attachAll()
	for i := range v.recovered {
		v.index.Set(v.recovered[i].ID, &v.recovered[i], nil)
		v.logs.is(v.recovered[i].ID, &v.recovered[i])
		s.Wake(v.recovered[i].ID, resting{record: &v.recovered[i]}, &messages.Resume{})
	}
	v.recovered = nil
	v.retention.deleteDue()
}

// Stop stops all timers.
func (v *volumes) Stop() {
	v.retention.stop()
	v.pins.stop()
}

// Props describes a volume's actor.
func (v *volumes) Props(id volume.ID, state any) *actor.Props {
	was := state.(resting)
	s := &subject{environment: v.environment, id: id, record: was.record, recorded: was.record, size: was.size}
	return v.subjects.Props(id, "volume "+string(id), s, v.more...)
}

// Idle notes that the deletion of a volume, if there was one, has ended.
func (v *volumes) Idle(id volume.ID, state any, _ bool) {
	left, ok := state.(resting)
	v.retention.ended(id, ok && left.record == nil)
}

// Sleep puts a volume to sleep, if it is known.
func (v *volumes) Sleep(id volume.ID, state any) {
	left := state.(resting)
	if left.record == nil {
		v.index.Forget(id)
		v.pins.drop(id)
		if source, ok := v.retention.detach(id); ok {
			v.pins.detach(source.ID)
		}
		return
	}
	was, _ := v.index.Look(id)
	v.pins.set(*left.record, was.Size)
	v.retention.add(left)
	v.tellToArchive()
}

// is takes over what a volume says of itself.
func (v *volumes) is(m *messages.VolumeIs) {
	v.index.Set(m.ID, m.Record, m.After)
	v.logs.is(m.ID, m.Record)
	if known, rests := v.look(m.ID); rests {
		v.pins.set(known.Record, known.Size)
	}
	v.retention.changed()
	v.tellToArchive()
}

// look returns what is known of a volume, and whether it rests; see [retained.Known].
func (v *volumes) look(id volume.ID) (known retained.Known, rests bool) {
	known, _ = v.index.Look(id)
	return known, known.Rests()
}

// Receive handles what concerns all volumes.
func (v *volumes) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *messages.Pressure:
		if m.Total > 0 {
			v.pins.total = m.Total
		}
		v.retention.pressure(m)
		v.tellLate()
	case *deletionDue:
		v.retention.due()
	case *pinOver:
		v.endPins()
	case *messages.SizesMeasured:
		v.pins.measured(m)
		v.retention.sizesMeasured(m)
	case *sizesDue:
		v.retention.sizesDue()
	case *messages.FindUnknown:
		v.findUnknown(m)
	case *messages.PodsSeen:
		v.podsSeen(m)
	case *podsLeft:
		v.lookForPods(m)
	case *messages.ListRetained:
		v.listRetained(m)
	case *messages.ListAwake:
		v.listAwake(m)
	case *messages.CountHoldings:
		v.countHoldings(m)
	case *messages.NextToArchive:
		v.nextToArchive(m)
	case *messages.VolumeIs:
		v.is(m)
	case *messages.BeginReading:
		v.beginReading(m)
	case *messages.EndReading:
		v.leases.giveBack(m.Begun)
	case *messages.LogsKept:
		v.logs.kept(m.Pod)
	default:
		actors.IgnoreLifecycle(v.Log, c)
	}
}

func (v *volumes) findUnknown(m *messages.FindUnknown) {
	var unknown []volume.Place
	for _, p := range m.Places {
		if !v.supervisor.IsAwake(p.ID) && !v.index.Has(p) {
			unknown = append(unknown, p)
		}
	}
	m.Send(unknown, nil)
}

// podsSeen lets the volumes look for their pods. From a directory without a single pod nothing is
// concluded while volumes are published: on a node with a kubelet there is at least one pod, the
// daemon's own. It is not the kubelet's directory then, or not mounted into the container, and
// mounts cannot be seen there either.
func (v *volumes) podsSeen(m *messages.PodsSeen) {
	published := v.published(v.supervisor.Active())
	if len(m.Names) > 0 || len(published) == 0 {
		v.sawNoPods = false
		v.setPodsError(nil)
		v.lookForPods(&podsLeft{seen: m, volumes: published})
		return
	}
	const empty = "the kubelet's pods directory is empty though volumes are published; is it the right one, and mounted into the container?"
	if !v.sawNoPods {
		v.Log.Error(nil, empty, logkeys.Directory, v.PodsDir, "volumes", len(published))
	}
	v.sawNoPods = true
	v.setPodsError(fmt.Errorf("%s: %s", v.PodsDir, empty))
}

// published leaves out the volumes that are being deleted.
func (v *volumes) published(active []volume.ID) []volume.ID {
	return slices.DeleteFunc(active, v.index.IsGoing)
}

// lookForPods lets the first of the volumes look, and then gives way to the messages that have come
// meanwhile.
func (v *volumes) lookForPods(m *podsLeft) {
	now := m.volumes[:min(len(m.volumes), podsBatch)]
	for _, id := range now {
		v.supervisor.Tell(id, m.seen)
	}
	if rest := m.volumes[len(now):]; len(rest) > 0 {
		v.Root.Send(v.supervisor.Self(), &podsLeft{seen: m.seen, volumes: rest})
	}
}
