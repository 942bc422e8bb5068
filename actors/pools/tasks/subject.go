package tasks

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/actors/pools/env"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/messages"
)

// subject is a volume, a snapshot or an attachment that is changing. The resource is the record: an
// operation begins by reading it.
type subject struct {
	*env.Environment
	actors.Simple
	// kind and name are those of the ID.
	kind, name string
}

// task is one operation: sequential code in a goroutine of its own.
type task struct {
	*env.Environment
	// name is the resource's.
	name string
	// unfinished is why the operation has to go on later; nil when it has not.
	unfinished error
}

// Props describes the actor of a resource that is changing: what has the ID.
func Props(e *env.Environment, id volume.ID) *actor.Props {
	kind, name := messages.SplitKey(id)
	return e.Subjects.Props(id, kind+" "+name, &subject{Environment: e, kind: kind, name: name})
}

func (s *subject) task() *task { return &task{Environment: s.Environment, name: s.name} }
