package arrays

import (
	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/actors/persistent"
	"github.com/katbox/katbox/messages"
)

// subject is a volume that is being changed or measured.
type subject struct {
	*environment
	actors.Simple
	volume string
}

// Rest: what a crash has left half done stays as it is until the kubelet stages or unstages the volume.
func (s *subject) Rest() *actors.Operation { return nil }

// Plan returns the operation that a request asks for.
func (s *subject) Plan(m messages.Request) *actors.Operation {
	t := &task{environment: s.environment, volume: s.volume}
	op := persistent.Plan(m, t)
	if m, ok := m.(*messages.ClearDetached); ok {
		op = actors.Change("clear", m, actors.Always, t.clearDetached)
	}
	if op == nil {
		return nil
	}
	op.Progress = &t.progress
	if sharedByPods(m) {
		op.Behind = sharedByPods
	}
	return op
}

// sharedByPods reports which requests wait for their turn behind one another: the kubelet starts and ends several pods
// that share a volume at the same time, and waits half a second or more after an error. What is staged or unstaged waits
// for no one: the kubelet does that before and after.
func sharedByPods(m messages.Request) bool {
	switch m.(type) {
	case *messages.PublishStaged, *messages.UnpublishStaged, *messages.ExpandStaged, *messages.StagedStats:
		return true
	}
	return false
}

// task is one operation: sequential code in a goroutine of its own.
type task struct {
	*environment
	volume   string
	progress actors.Progress
}
