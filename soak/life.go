package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/soak/internal/faults"
	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/kubelet"
	"github.com/katbox/katbox/soak/internal/pause"
	"github.com/katbox/katbox/soak/internal/workload"
)

// life is the life of one pod, from its creation until the kubelet has nothing
// of it left.
type life struct {
	environment *environment
	churn       *churn
	planned     workload.Pod
	pod         *kubelet.Pod
	// mounted and gone are called when the kubelet says so, as often as it does;
	// they close the channels.
	mounted, gone     func()
	isMounted, isGone chan struct{}
	volumes           map[*kubelet.Volume]*scratch
}

func newLife(c *churn, planned workload.Pod) *life {
	l := &life{
		environment: c.environment, churn: c, planned: planned,
		pod:       kubelet.NewPod(c.environment.layout.Kubelet, c.environment.layout.Work, planned),
		isMounted: make(chan struct{}), isGone: make(chan struct{}),
		volumes: make(map[*kubelet.Volume]*scratch),
	}
	l.mounted = sync.OnceFunc(func() { close(l.isMounted) })
	l.gone = sync.OnceFunc(func() { close(l.isGone) })
	for _, v := range l.pod.Volumes {
		l.volumes[v] = &scratch{environment: c.environment, churn: c, volume: v}
		c.environment.checker.Expect(v.Story)
	}
	return l
}

// live is the whole of it. What it cannot do any more because the run is over is
// left to the end of the run.
func (l *life) live(ctx context.Context) {
	defer l.gone() // no caller waits for it any more
	l.environment.report.Count.Volumes.Add(int64(len(l.pod.Volumes)))
	l.environment.api.Create(l.pod)
	l.sendBadCalls(ctx)
	if removed := l.removal(); removed != nil && removed.Choice%2 == 0 {
		l.removeUnderDriver(ctx, removed)
		return
	}
	if l.planned.DeletedEarly > 0 {
		l.churn.arrive()
		if pause.For(ctx, l.planned.DeletedEarly) == nil {
			l.finish(ctx)
		}
		return
	}
	if !wait(ctx, l.isMounted) {
		return
	}
	l.environment.report.Count.Containers.Add(1)
	l.each((*scratch).begin)
	local := l.beginLocal(ctx)
	l.churn.arrive()
	if l.churn.rest(ctx, l.planned.Length) != nil {
		return
	}
	l.each((*scratch).finish)
	l.endLocal(ctx, local)
	if s := l.environment.podsAPI; s != nil {
		s.Ended(l.pod)
	}
	if removed := l.removal(); removed != nil {
		l.removeByForce(ctx, removed.Choice%4 == 1)
		return
	}
	l.finish(ctx)
}

// finish says that the containers have ended, and waits for the kubelet.
func (l *life) finish(ctx context.Context) {
	l.environment.api.Finish(l.pod)
	l.each(func(s *scratch) { s.letGo(ctx) })
	if !wait(ctx, l.isGone) {
		return
	}
	l.each(func(s *scratch) { s.afterlife(ctx) })
	l.again(ctx)
}

// each does something with all volumes at the same time.
func (l *life) each(do func(*scratch)) {
	var group sync.WaitGroup
	for _, s := range l.volumes {
		group.Go(func() { do(s) })
	}
	group.Wait()
}

// unmounted is told by the kubelet what became of a volume.
func (l *life) unmounted(v *kubelet.Volume, how kubelet.Outcome) { l.volumes[v].over(how) }

// removal is the fault that removes the pod's directory, nil if there is none.
func (l *life) removal() *workload.PlannedFault {
	for _, v := range l.pod.Volumes {
		if t := v.Plan.Trouble; t != nil && t.Kind == workload.PodRemoved {
			return t
		}
	}
	return nil
}

// removeUnderDriver is what a kubelet does to a pod that is deleted while its
// volumes are being mounted. Whether it unpublishes them is up to the answer of
// the publish.
func (l *life) removeUnderDriver(ctx context.Context, f *workload.PlannedFault) {
	l.churn.arrive()
	if pause.For(ctx, f.Delay) != nil {
		return
	}
	l.environment.api.Finish(l.pod)
	for _, v := range l.pod.Volumes {
		if err := faults.Undercut(v.Story); err != nil {
			l.churn.failed(v, err)
		}
	}
	l.environment.injected.add(workload.PodRemoved)
	l.finish(ctx)
}

// removeByForce is what a person does who cleans up a node: the mounts
// and the pod's directory are removed, without an unpublish. After a
// reboot the kubelet does the same, and may leave a part of the directory for ever.
func (l *life) removeByForce(ctx context.Context, leave bool) {
	for _, v := range l.pod.Volumes {
		if err := faults.Uproot(v.Story, leave); err != nil {
			l.churn.failed(v, err)
			l.finish(ctx)
			return
		}
	}
	if err := l.churn.node.forget(l.pod, leave); err != nil {
		l.environment.findings.Add(history.Completed, nil, fmt.Sprintf("pod %s: %v", l.planned.UID, err))
	}
	l.environment.injected.add(workload.PodRemoved)
	l.finish(ctx)
}

// failed reports that the soak itself could not go on with a volume.
func (c *churn) failed(v *kubelet.Volume, err error) {
	c.environment.findings.Add(history.Completed, v.Story, err.Error())
}

// isFull reports whether something failed because there was no room.
func isFull(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// wait waits for something, and is false if the run ends before.
func wait(ctx context.Context, happened <-chan struct{}) bool {
	select {
	case <-happened:
		return true
	case <-ctx.Done():
		return false
	}
}
