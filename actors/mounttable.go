package actors

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/katbox/katbox/internal/mount"
	"github.com/katbox/katbox/internal/scratch"
	"github.com/katbox/katbox/internal/volume"
	"github.com/katbox/katbox/messages"
)

// mountTable answers where a volume is mounted. To read the mount table costs
// more with every mount on the node, so that those who ask at the same time
// share one reading; it always begins after the question, never before.
type mountTable struct {
	read func() ([]mount.Binding, error)
	// fatal ends the daemon.
	fatal     func(error)
	questions chan messages.Reply[[]mount.Binding]
}

func newMountTable(read func() ([]mount.Binding, error), fatal func(error)) *mountTable {
	// As many as may run at the same time can ask without waiting.
	return &mountTable{read: read, fatal: fatal, questions: make(chan messages.Reply[[]mount.Binding], maxWorkers)}
}

// serve reads for those who ask, until ctx ends.
func (t *mountTable) serve(ctx context.Context) {
	for {
		var waiting []messages.Reply[[]mount.Binding]
		select {
		case question := <-t.questions:
			waiting = append(waiting, question)
		case <-ctx.Done():
			return
		}
		for more := true; more; {
			select {
			case question := <-t.questions:
				waiting = append(waiting, question)
			default:
				more = false
			}
		}
		bindings, err := t.read()
		if errors.Is(err, scratch.ErrCovered) {
			t.fatal(err)
		}
		for _, question := range waiting {
			question.Send(bindings, err)
		}
	}
}

// mountedAt returns where the volume's data directory, or something in it, is
// mounted.
func (t *mountTable) mountedAt(ctx context.Context, pod volume.PodUID, id volume.ID) ([]string, error) {
	question := messages.NewReply[[]mount.Binding]()
	select {
	case t.questions <- question:
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: the daemon is stopping", volume.ErrUnavailable)
	}
	bindings, err := question.Wait(ctx)
	if err != nil {
		return nil, err
	}
	data := string(pod) + "/" + string(id)
	var places []string
	for _, b := range bindings {
		if b.Source == data || strings.HasPrefix(b.Source, data+"/") {
			places = append(places, b.Target)
		}
	}
	return places, nil
}
