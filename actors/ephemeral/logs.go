package ephemeral

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/katbox/katbox/internal/lib/kubelet"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/lastwords"
	"github.com/katbox/katbox/messages"
)

// logsParallel is how many pods' logs are copied at the same time, behind all calls.
const logsParallel = 2

// logsRoom is how long after an attempt that a full disk has ended there is another one, the last: volumes that are deleted
// give room. As long as logs wait, the space of files that the kubelet removes is not free.
const logsRoom = 5 * time.Second

// logsPatience is how long an unpublish waits for the logs of its pod to be open. Where their disk hangs it goes on without
// them, well before the kubelet gives up the call.
const logsPatience = time.Second

// logs decides whose logs are kept, and when: once the first volume of a pod is retained, because a kubelet unpublishes
// what no container uses any more. It acts in the turn of the owner of all volumes. A nil logs keeps none.
type logs struct {
	*environment
	queue *logsQueue
	pods  map[volume.PodUID]*loggedPod
	// live are the pods of the volumes that are published.
	live map[volume.ID]volume.PodUID
}

// loggedPod is a pod with volumes that are published, or whose logs are being kept.
type loggedPod struct {
	// live is how many volumes it has that are published.
	live int
	// of is the volume whose terms its logs get: of those that it has, the one that is kept longest.
	of volume.Record
	// followed: its directory is. refused: one of its volumes wants no logs to be kept. ordered: they are being kept, or
	// were already.
	followed, refused, ordered bool
	// keeping is how many orders are not carried out yet.
	keeping int
}

func newLogs(env *environment, queue *logsQueue) *logs {
	if queue == nil {
		return nil
	}
	return &logs{environment: env, queue: queue, pods: map[volume.PodUID]*loggedPod{}, live: map[volume.ID]volume.PodUID{}}
}

// is takes over what a volume says of itself; r is nil if nothing is known of it.
func (l *logs) is(id volume.ID, r *volume.Record) {
	switch {
	case l == nil || r != nil && (r.Attach != volume.Place{} || r.IsLogs()):
	case r != nil && r.Phase.Live():
		l.lives(r)
	default:
		l.ended(id, r)
	}
}

// lives is for a volume that is published.
func (l *logs) lives(r *volume.Record) {
	p := l.pods[r.Pod]
	if p == nil {
		p = &loggedPod{of: *r}
		l.pods[r.Pod] = p
	}
	if _, known := l.live[r.ID]; !known {
		l.live[r.ID] = r.Pod
		p.live++
		p.ordered = false // a pod whose volume was retained before goes on
	}
	if p.refused = p.refused || r.Terms.NoLogs; p.refused {
		l.leave(p)
		return
	}
	if r.ID == p.of.ID || l.keeps(*r) > l.keeps(p.of) {
		p.of = *r
	}
	if !p.followed {
		p.followed = true
		l.Logs.Follow(podOf(r))
	}
}

// ended is for a volume that is not published, or any more.
func (l *logs) ended(id volume.ID, r *volume.Record) {
	pod, known := l.live[id]
	if !known {
		return
	}
	delete(l.live, id)
	p := l.pods[pod]
	p.live--
	if r != nil && p.followed && !p.ordered {
		p.ordered = true
		p.keeping++
		l.queue.add(dueLogs{of: p.of})
	}
	l.tidy(pod, p)
}

// kept is for logs that are kept, or cannot be.
func (l *logs) kept(pod volume.PodUID) {
	if l == nil || l.pods[pod] == nil {
		return
	}
	p := l.pods[pod]
	p.keeping--
	l.tidy(pod, p)
}

// tidy forgets a pod for which nothing is left to do.
func (l *logs) tidy(pod volume.PodUID, p *loggedPod) {
	if p.live == 0 && p.keeping == 0 {
		l.leave(p)
		delete(l.pods, pod)
	}
}

func (l *logs) leave(p *loggedPod) {
	if p.followed && p.keeping == 0 {
		p.followed = false
		l.Logs.Leave(p.of.Pod)
	}
}

func podOf(r *volume.Record) lastwords.Pod {
	return lastwords.Pod{UID: r.Pod, Namespace: r.Namespace, Name: r.PodName}
}

// dueLogs are logs to be kept, by the volume whose terms they get.
type dueLogs struct {
	of volume.Record
	// again: there was no room for them before.
	again bool
}

// logsQueue has the pods whose logs are to be kept, in the order in which they ended.
type logsQueue struct {
	mu   sync.Mutex
	due  []dueLogs
	wake chan struct{}
	// failed limits the lines about logs that cannot be kept: on a full disk none can be.
	failed *lineLimit
}

func newLogsQueue() *logsQueue {
	return &logsQueue{wake: make(chan struct{}, 1), failed: newLineLimit(1, failedInterval)}
}

// add adds a pod. It does not block.
func (q *logsQueue) add(d dueLogs) {
	q.mu.Lock()
	q.due = append(q.due, d)
	q.mu.Unlock()
	q.ring()
}

func (q *logsQueue) ring() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// next returns the next pod; ok is false once ctx has ended.
func (q *logsQueue) next(ctx context.Context) (d dueLogs, ok bool) {
	for ctx.Err() == nil {
		q.mu.Lock()
		if len(q.due) > 0 {
			d, q.due = q.due[0], q.due[1:]
			more := len(q.due) > 0
			q.mu.Unlock()
			if more {
				q.ring() // another one may wait
			}
			return d, true
		}
		q.mu.Unlock()
		select {
		case <-q.wake:
		case <-ctx.Done():
		}
	}
	return d, false
}

// openLogs opens what there is of a pod's logs, before the unpublish of a volume at target lets the kubelet go on.
func (n *Node) openLogs(ctx context.Context, target string) {
	if n.env.Logs == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, logsPatience)
	defer cancel()
	n.env.Logs.Look(ctx, volume.PodUID(kubelet.PodOf(n.env.PodsDir, target)))
}

// keepLogs keeps the logs of pods until ctx ends.
func (n *Node) keepLogs(ctx context.Context, queue *logsQueue) {
	for {
		due, ok := queue.next(ctx)
		if !ok {
			return
		}
		of := due.of
		err := n.keepLogsOf(ctx, of)
		if errors.Is(err, volume.ErrNoSpace) && !due.again {
			time.AfterFunc(logsRoom, func() { queue.add(dueLogs{of, true}) })
			continue
		}
		if err != nil && ctx.Err() == nil {
			n.env.Metrics.LogsNotKept()
			if errors.Is(err, volume.ErrNotFound) {
				// Logs have the terms of the volume. It has expired, or a person has deleted it: so nothing is to be kept.
				n.env.Log.V(1).Info("a pod's volume was gone before its logs were kept", logkeys.About(of)...)
			} else {
				queue.failed.write(func() {
					n.env.Log.Error(err, "cannot keep the logs of a pod", logkeys.About(of)...)
				}, func(more int) {
					n.env.Log.Error(err, "cannot keep the logs of more pods; this is the last reason", "pods", more)
				})
			}
		}
		n.Root.Send(n.Supervisor(), &messages.LogsKept{Pod: of.Pod})
	}
}

// keepLogsOf keeps the logs of a pod, by what is known of one of its volumes when they are retained.
func (n *Node) keepLogsOf(ctx context.Context, of volume.Record) error {
	for {
		now, err := n.Describe(ctx, of.ID)
		if err != nil {
			return err
		}
		err = n.Change(ctx, &messages.KeepLogs{Routing: messages.Routing{ID: volume.LogsID(of.Pod)}, Of: now.Record})
		if !errors.Is(err, errLogsOfAnother) {
			return err
		}
	}
}
