package ephemeral

import (
	"context"
	"errors"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/messages"
)

// Names of operations.
const (
	publishing  = "publish"
	deleting    = "delete"
	keepingLogs = "keep logs"
)

// operation is one change of a volume.
type operation struct {
	// name is for traces.
	name string
	// origin is the call that asked for it first; nil when that is not traced.
	origin *messages.Origin
	run    func(*task) error
	// same reports whether a request asks for what this operation does anyway; nil when none does.
	same func(messages.Request) bool
	// brief: it writes one record, and nothing that a request asks for contradicts it. All requests
	// that meet it wait, except questions: what they are about stays the same.
	brief bool
	// asked: a caller waits for it.
	asked bool
}

// change returns the operation that runs on a copy of what is known of the volume.
func (v *subject) change(o operation) *actors.Operation {
	t := &task{environment: v.environment, id: v.id, record: v.record, recorded: v.recorded, size: v.size, deletion: v.deletion,
		doubted: v.doubted}
	op := &actors.Operation{Name: o.name, Same: o.same, Behind: waits}
	switch {
	case o.brief:
		op.Behind = changes
	case o.name == deleting:
		op.Behind = waitsForDeletion
	}
	op.Run = func(context.Context) actors.Outcome { return actors.Outcome{Err: t.traced(&o)} }
	op.Then = func(e *actors.Outcome) {
		before := v.record
		if !e.NotBegun {
			v.takeOver(t)
		}
		v.tell()
		if errors.Is(e.Err, volume.ErrNoSpace) && o.name != deleting && !o.brief {
			v.Root.Send(v.diskActor, &messages.NoSpace{})
		}
		e.Unfinished = v.unfinished(o, t, *e)
		v.reportStuck()
		if o.name == publishing && e.Err == nil {
			op.Answered = func() { v.tellPublished(before) }
		}
	}
	return op
}

// rewrite is an operation that records something of a retained volume that leaves all else of it as it is.
func (v *subject) rewrite(name string, m messages.Request, run func(*task) error) *actors.Operation {
	return v.change(operation{name: name, origin: m.Route().Origin, run: run, brief: true, asked: true})
}

// waits reports whether a request waits for an operation: what is learned of the volume, or decided. The operation
// works on a copy of what is known.
func waits(m messages.Request) bool {
	switch m.(type) {
	case *messages.OwnVolume, *messages.EndVolume, *messages.HoldVolume, *messages.ProlongVolume, *messages.KeepEnd,
		*messages.ArchivedVolume:
		return true
	}
	return false
}

// waitsForDeletion is waits for a deletion, which takes a moment; then there is nothing left to unmount.
func waitsForDeletion(m messages.Request) bool {
	switch m.(type) {
	case *messages.OwnVolume, *messages.EndVolume, *messages.UnpublishVolume, *messages.ProlongVolume, *messages.KeepEnd:
		return true
	}
	return false
}

// changes reports whether a request may change the volume.
func changes(m messages.Request) bool {
	_, question := m.(*messages.VolumeStats)
	return !question
}

// isAside reports whether a request is none of the kubelet's.
func isAside(m messages.Request) bool {
	switch m.(type) {
	case *messages.OwnVolume, *messages.EndVolume, *messages.HoldVolume, *messages.KeepLogs, *messages.KeepEnd,
		*messages.ArchivedVolume:
		return true
	}
	return false
}

// takeOver takes over what an operation has left.
func (v *subject) takeOver(t *task) {
	v.record, v.recorded = t.record, t.recorded
	live := t.record == nil || t.record.Phase.Live()
	v.doubt(t.doubted && t.record != nil && live)
	if live {
		v.size = volume.Size{}
	}
	if live || t.unmounted && t.record.Phase == volume.Retained {
		v.deletionOrdered, v.deletionFailed, v.deletionTries = false, nil, 0
	}
}

// tell tells the owner of all volumes what is known of this one, before a caller hears of it.
func (v *subject) tell() {
	v.Root.Send(v.Supervisor(), &messages.VolumeIs{ID: v.id, Record: v.record, After: v.publish})
}

// unfinished returns why the volume has to go on later, if it has to.
func (v *subject) unfinished(o operation, t *task, e actors.Outcome) error {
	stuck := t.stuck
	if o.name == deleting || e.NotBegun {
		stuck = e.Err // a deletion that panicked is tried again too
	}
	switch {
	case stuck != nil:
		return v.stillStuck(stuck)
	case e.Err == nil:
		v.stuck = nil
	case !o.asked:
		v.Log.Error(e.Err, "operation failed", logkeys.About(v.known())...)
	}
	return nil
}
