package ephemeral

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/mount"
	"github.com/katbox/katbox/internal/node/scratch"
	"github.com/katbox/katbox/messages"
)

const (
	// tableShare bounds what readings for patient questions cost: after each, the next one waits
	// this many times as long as it took. With 20,000 mounts a reading takes 60 ms of CPU and more.
	tableShare = 20
	// longestTableRest bounds that wait.
	longestTableRest = 2 * time.Second
)

// mountTable answers what is mounted. A reading costs more with every mount on the node, so
// questions that come at the same time share one, which always begins after the question. Nothing
// is remembered: the table changes without a sign when a directory is renamed.
type mountTable struct {
	read func() ([]mount.Binding, error)
	// fatal ends the daemon.
	fatal     func(error)
	questions chan tableQuestion
}

// tableQuestion asks for a reading. A patient one waits for others to share it with: that of an
// expiry, which no caller waits for.
type tableQuestion struct {
	patient bool
	messages.Reply[*mounted]
}

func newMountTable(read func() ([]mount.Binding, error), fatal func(error)) *mountTable {
	// As many operations as may run at the same time can ask without waiting.
	return &mountTable{read: read, fatal: fatal, questions: make(chan tableQuestion, actors.MaxWorkers)}
}

// serve answers questions until ctx ends.
func (t *mountTable) serve(ctx context.Context) {
	var rested time.Time
	for {
		waiting := t.collect(ctx, rested)
		if waiting == nil {
			return
		}
		began := time.Now()
		bindings, err := t.read()
		now := time.Now()
		rested = now.Add(min(tableShare*now.Sub(began), longestTableRest))
		if errors.Is(err, scratch.ErrCovered) {
			t.fatal(err)
		}
		found := sortBindings(bindings)
		for _, question := range waiting {
			question.Send(found, err)
		}
	}
}

// collect returns the questions for the next reading, once one of them is not patient or the rest
// is over; none when ctx has ended.
func (t *mountTable) collect(ctx context.Context, rested time.Time) (waiting []tableQuestion) {
	var due <-chan struct{}
	for {
		select {
		case question := <-t.questions:
			waiting = append(waiting, question)
			if !question.patient {
				return t.collectRest(waiting)
			}
			if due == nil {
				rest, end := context.WithDeadline(ctx, rested)
				defer end()
				due = rest.Done()
			}
		case <-due:
			if ctx.Err() != nil {
				return nil
			}
			return t.collectRest(waiting)
		case <-ctx.Done():
			return nil
		}
	}
}

// collectRest adds the questions that have come by now.
func (t *mountTable) collectRest(waiting []tableQuestion) []tableQuestion {
	for {
		select {
		case question := <-t.questions:
			waiting = append(waiting, question)
		default:
			return waiting
		}
	}
}

// look returns what is mounted at a time after this call.
func (t *mountTable) look(ctx context.Context, patient bool) (*mounted, error) {
	question := tableQuestion{patient: patient}
	question.Prepare()
	select {
	case t.questions <- question:
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: the daemon is stopping", volume.ErrUnavailable)
	}
	return question.Wait(ctx)
}

// mounted is what one reading of the mount table has found. It is shared and does not change.
type mounted struct {
	// targets are by what is mounted there: <pod>/<volume> for a data directory and everything in
	// it, <pod> for the directory of a pod.
	targets map[string][]string
}

// sortBindings makes questions about single volumes cheap.
func sortBindings(bindings []mount.Binding) *mounted {
	m := &mounted{targets: make(map[string][]string, len(bindings))}
	for _, b := range bindings {
		what := b.Source
		if pod, below, ok := strings.Cut(b.Source, "/"); ok {
			id, _, _ := strings.Cut(below, "/")
			what = b.Source[:len(pod)+1+len(id)]
		}
		m.targets[what] = append(m.targets[what], b.Target)
	}
	return m
}

// volume returns where the volume's data directory, or something in it, is mounted.
func (m *mounted) volume(p volume.Place) []string {
	return m.targets[p.String()]
}

// pod returns where the directory with a pod's volumes is mounted for a pod, as if it were a volume
// itself; "" when it is not.
func (m *mounted) pod(pod volume.PodUID, podsDir string) string {
	for _, target := range m.targets[string(pod)] {
		if strings.HasPrefix(target, podsDir+"/") {
			return target
		}
	}
	return ""
}

// all returns where the working directory, or one above it, is mounted for a pod; "" when it is not.
func (m *mounted) all() string {
	if targets := m.targets[mount.Above]; len(targets) > 0 {
		return targets[0]
	}
	return ""
}
