package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/katbox/katbox/soak/internal/pause"
	"github.com/katbox/katbox/soak/story"
)

const (
	// idlePause is between two looks at a volume that nothing should happen to,
	// eagerPause between those at one that is to go.
	idlePause  = 500 * time.Millisecond
	eagerPause = 200 * time.Millisecond
)

// treatment is what the kubelet does to a volume after the boot.
type treatment string

const (
	// Its pod is on the node: nothing happens for some lifespans, then the
	// kubelet publishes it again, and after that the pod ends.
	treatHold treatment = "hold"
	// Its pod is on the node, and the kubelet publishes at once.
	treatPublish treatment = "publish"
	// Its pod is over: the kubelet finds the directories and unpublishes.
	treatUnpublish treatment = "unpublish"
	// Its pod's directories are removed, and no call comes.
	treatForget treatment = "forget"
	// The kubelet knows nothing of it any more.
	treatWait treatment = "wait"
)

// treat decides it, by what is known of the volume and by its name. Forgetting
// takes the whole pod, so it has to be alone in there.
func treat(s *story.Story, volume string, alone bool) treatment {
	h := fnv.New32a()
	_, _ = h.Write([]byte(volume))
	choice := h.Sum32() % 3
	switch {
	case s.Is(story.Live):
		return treatHold
	case s.May(story.Live) && choice == 0 && alone:
		return treatForget
	case s.May(story.Live) && choice == 1:
		return treatUnpublish
	case s.May(story.Live):
		return treatPublish
	case choice == 0:
		return treatWait
	case choice == 1:
		return treatUnpublish
	default:
		return treatPublish
	}
}

// follower goes on with a volume after the boot, and is its story's only writer.
type follower struct {
	place
	*story.Story
	treatment treatment
	// hold is how long nothing happens to one that is published.
	hold time.Duration
	// recorded: a record of it was on the disk.
	recorded bool
	// by is the volume of another pod that has it attached; nil if none may.
	by *place
	// decided: something was decided about it, or it was attached, while it was retained.
	decided bool
}

// cut is told when the node has booted. A volume that may have ended before it was published again may be a new one, whose
// record was not on the disk yet.
func (f *follower) cut(booted time.Time) {
	if f.May(story.Live) && f.MayBeGone(booted) {
		f.recorded = false
	}
	f.Add(story.Event{At: booted, What: story.Cut})
}

// look looks at the data directory.
func (f *follower) look() {
	e := story.Event{At: time.Now()}
	e.What, e.Text = look(f.Data(), f.volume, f.Markers())
	e.Until = time.Now()
	f.Add(e)
}

// follow goes on until the volume is gone, or has to be. The error says that ctx
// ended.
func (f *follower) follow(ctx context.Context) error {
	f.look()
	if f.Is(story.Kept) {
		f.stated(ctx)
	}
	if f.treatment == treatHold || f.by != nil {
		for over := time.Now().Add(f.hold); time.Now().Before(over); {
			if err := pause.For(ctx, idlePause); err != nil {
				return err
			}
			f.look()
		}
	}
	if f.by != nil {
		f.lookAgain(ctx)
	}
	switch f.treatment {
	case treatHold:
		f.republish(ctx)
		f.leave(ctx)
	case treatPublish:
		f.republish(ctx)
		f.leave(ctx)
	case treatUnpublish:
		f.leave(ctx)
	case treatForget:
		f.vanish()
	}
	if f.Name == failing || f.decided {
		f.letGo(ctx)
	}
	for f.look(); !f.IsGone() && f.Broken() == ""; f.look() {
		if err := pause.For(ctx, eagerPause); err != nil {
			return err
		}
	}
	return nil
}

// republish is a publish as after a reboot. The volume has to show its data.
func (f *follower) republish(ctx context.Context) {
	f.Add(story.Event{At: time.Now(), What: story.Publish})
	err := f.MakeTargetDir()
	if err == nil {
		err = f.publish(ctx)
	}
	replied := time.Now()
	if err != nil {
		f.Add(story.Event{At: replied, What: story.Failed, Text: fmt.Sprintf("publish: %v", err)})
		return
	}
	found, err := count(f.Target(), f.volume, f.Markers())
	if err != nil {
		f.Add(story.Event{At: replied, What: story.Failed, Text: fmt.Sprintf("published: %v", err)})
		return
	}
	f.Add(story.Event{At: replied, What: story.Published, N: found})
}

// leave is an unpublish.
func (f *follower) leave(ctx context.Context) {
	now := time.Now()
	lifespans := []time.Duration{f.keeps(), f.lifespan, f.former}
	if f.Name == failing && f.recorded {
		lifespans = lifespans[:1]
	}
	for _, lifespan := range lifespans {
		f.Add(story.Event{At: now, What: story.Unpublish, Lifespan: lifespan})
	}
	if err := f.unpublish(ctx); err != nil {
		f.Add(story.Event{At: time.Now(), What: story.Failed, Text: fmt.Sprintf("unpublish: %v", err)})
		return
	}
	f.Add(story.Event{At: time.Now(), What: story.Retained, Lifespan: f.keeps()})
	if err := f.RemoveTargetDir(); err != nil {
		f.Add(story.Event{At: time.Now(), What: story.Failed, Text: err.Error()})
	}
}

// vanish removes the pod's directories. The daemon looks for them a few times
// within its grace time, so that it notices within twice that.
func (f *follower) vanish() {
	now := time.Now()
	if err := f.RemoveTargetDir(); err != nil {
		f.Add(story.Event{At: now, What: story.Failed, Text: err.Error()})
		return
	}
	f.Add(story.Event{At: now, What: story.Unpublish, Lifespan: f.former})
	f.Add(story.Event{At: now, Until: now.Add(2 * f.grace), What: story.Forget, Lifespan: f.lifespan})
}
