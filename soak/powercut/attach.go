package main

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/soak/story"
)

// looker is the volume of another pod, which shows what a retained one has.
func (p place) looker(pod string) place {
	by := p.place(pod, "look")
	by.attributes = map[string]string{api.KeyAttach: p.Pod + "/" + p.Name}
	return by
}

// attach lets another pod look at a retained volume for a while. In the end a person lets the volume go.
func (l *life) attach(ctx context.Context) error {
	if l.churn.quiet.wait(ctx) != nil {
		return errOver
	}
	by := l.looker(l.churn.newPod())
	if err := l.tell(story.Event{What: story.Attach, Text: by.Pod}); err != nil {
		return err
	}
	if err := by.MakeTargetDir(); err != nil {
		return err
	}
	err := l.repeat(func() error { return by.publish(ctx) })
	if status.Code(err) == codes.NotFound { // its deadline came first
		if err := l.tell(story.Event{What: story.Detached}); err != nil {
			return err
		}
		return by.RemoveTargetDir()
	}
	if err == nil {
		err = by.shows(l.volume, l.markers)
	}
	if err != nil {
		return fmt.Errorf("attach to pod %s: %w", by.Pod, err)
	}
	if err := l.tell(story.Event{What: story.Attached}); err != nil {
		return err
	}
	longest := time.Second
	if l.random.IntN(2) == 0 {
		longest = 20 * time.Second
	}
	if l.rest(ctx, longest) != nil || l.churn.quiet.wait(ctx) != nil {
		return errOver
	}
	if err := l.tell(story.Event{What: story.Detach, Lifespan: releaseGrace}); err != nil {
		return err
	}
	if err := l.repeat(func() error { return by.unpublish(ctx) }); err != nil {
		return fmt.Errorf("detach from pod %s: %w", by.Pod, err)
	}
	replied := time.Now()
	if l.durable(ctx, replied) != nil {
		return errOver
	}
	if err := l.tell(story.Event{At: replied, What: story.Detached}); err != nil {
		return err
	}
	if err := by.RemoveTargetDir(); err != nil {
		return err
	}
	return l.letGo(ctx)
}

// shows returns an error unless a looker shows all markers of a volume.
func (p place) shows(volume string, markers int) error {
	found, err := count(p.Target(), volume, markers)
	if err == nil && found != markers {
		err = fmt.Errorf("it shows %d of %d markers", found, markers)
	}
	return err
}

// lookAgain is the other pod after a reboot: the kubelet publishes its volume anew, and the pod ends. Meanwhile the one
// that it looks at stays, if that it was attached is durable.
func (f *follower) lookAgain(ctx context.Context) {
	fail := func(what string, err error) {
		f.Add(story.Event{At: time.Now(), What: story.Failed, Text: fmt.Sprintf("%s pod %s: %v", what, f.by.Pod, err)})
	}
	f.Add(story.Event{At: time.Now(), What: story.Attach})
	switch err := f.by.publish(ctx); {
	case status.Code(err) == codes.NotFound && f.MayBeGone(time.Now()):
	case err != nil:
		fail("attach to", err)
	default:
		f.Add(story.Event{At: time.Now(), What: story.Attached})
		if err := f.by.shows(f.volume, f.Markers()); err != nil {
			fail("attached to", err)
		}
	}
	f.Add(story.Event{At: time.Now(), What: story.Detach, Lifespan: releaseGrace})
	if err := f.by.unpublish(ctx); err != nil {
		fail("detach from", err)
		return
	}
	f.Add(story.Event{At: time.Now(), What: story.Detached})
	if err := f.by.RemoveTargetDir(); err != nil {
		fail("remove the directories of", err)
	}
}
