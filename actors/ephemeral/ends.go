package ephemeral

import (
	"context"
	"sync"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/lastwords"
	"github.com/katbox/katbox/messages"
)

// mostEnds is how many bytes about pods that have ended are remembered until their logs are kept: those of some 4,000 pods.
const mostEnds = 4 << 20

// ends remembers how pods have ended. Nil remembers nothing.
type ends struct {
	mu    sync.Mutex
	all   map[volume.PodUID][]byte
	order []volume.PodUID
	bytes int
}

// put remembers the end of a pod, and forgets those before that are too many.
func (e *ends) put(pod volume.PodUID, end []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	before, known := e.all[pod]
	if !known {
		e.order = append(e.order, pod)
	}
	e.all[pod] = end
	e.bytes += len(end) - len(before)
	for e.bytes > mostEnds {
		e.bytes -= len(e.all[e.order[0]])
		delete(e.all, e.order[0])
		e.order = e.order[1:]
	}
}

// of returns the end of a pod; nil if it is not known.
func (e *ends) of(pod volume.PodUID) []byte {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.all[pod]
}

// KeepEnd keeps how a pod has ended, as package podend encodes it, with the logs of the pod. They may be kept already, or
// later. On a node that keeps no logs it does nothing.
func (n *Node) KeepEnd(ctx context.Context, pod volume.PodUID, end []byte) error {
	if n.env.ends == nil {
		return nil
	}
	n.env.ends.put(pod, end)
	return n.Change(ctx, &messages.KeepEnd{Routing: n.routing(ctx, volume.LogsID(pod)), Pod: pod})
}

// keepEnd answers where nothing is kept of the pod: its end is kept once there is.
func (v *volumes) keepEnd(m *messages.KeepEnd) (done bool) {
	if v.supervisor.IsAwake(m.ID) || v.index.Has(volume.Place{Pod: m.Pod, ID: m.ID}) {
		v.leases.loseToArchive(m.ID, errEndAnew)
		return false
	}
	m.Send(struct{}{}, nil)
	return true
}

// keepEnd returns the operation that keeps the end of a pod with its logs. If the archive has a copy without it, they are to be
// archived once more.
func (v *subject) keepEnd(m *messages.KeepEnd) *actors.Operation {
	return v.change(operation{name: "keep end", origin: m.Route().Origin, asked: true, run: func(t *task) error {
		end := t.ends.of(m.Pod) // it may be forgotten among too many
		if end == nil || t.record == nil || !t.record.IsLogs() || t.record.Phase != volume.Retained {
			return nil
		}
		return t.Scratch.WithData(t.record.Place(), func(fd int) error {
			if lastwords.HasEnd(fd, end) {
				return nil
			}
			if t.record.Archived() {
				if err := t.save(t.record.LogsAnew(t.record.Unpublished)); err != nil {
					return err
				}
			}
			return lastwords.KeepEnd(fd, end)
		})
	}})
}
