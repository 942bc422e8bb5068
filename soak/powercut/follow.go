package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/katbox/katbox/soak/internal/pause"
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
func treat(s *story, volume string, alone bool) treatment {
	h := fnv.New32a()
	_, _ = h.Write([]byte(volume))
	choice := h.Sum32() % 3
	switch {
	case s.is(live):
		return treatHold
	case s.may(live) && choice == 0 && alone:
		return treatForget
	case s.may(live) && choice == 1:
		return treatUnpublish
	case s.may(live):
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
	*story
	treatment treatment
	// hold is how long nothing happens to one that is published.
	hold time.Duration
}

// look looks at the data directory.
func (f *follower) look() {
	e := event{at: time.Now()}
	e.what, e.text = look(f.data(), f.volume, f.markers)
	e.until = time.Now()
	f.add(e)
}

// follow goes on until the volume is gone, or has to be. The error says that ctx
// ended.
func (f *follower) follow(ctx context.Context) error {
	f.look()
	switch f.treatment {
	case treatHold:
		for over := time.Now().Add(f.hold); time.Now().Before(over); {
			if err := pause.For(ctx, idlePause); err != nil {
				return err
			}
			f.look()
		}
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
	for f.look(); f.last != gone && f.broken == ""; f.look() {
		if err := pause.For(ctx, eagerPause); err != nil {
			return err
		}
	}
	return nil
}

// republish is a publish as after a reboot. The volume has to show its data.
func (f *follower) republish(ctx context.Context) {
	f.add(event{at: time.Now(), what: publish})
	err := f.makeTargetDir()
	if err == nil {
		err = f.publish(ctx)
	}
	replied := time.Now()
	if err != nil {
		f.add(event{at: replied, what: failed, text: fmt.Sprintf("publish: %v", err)})
		return
	}
	found, err := count(f.target(), f.volume, f.markers)
	if err != nil {
		f.add(event{at: replied, what: failed, text: fmt.Sprintf("published: %v", err)})
		return
	}
	f.add(event{at: replied, what: published, n: found})
}

// leave is an unpublish.
func (f *follower) leave(ctx context.Context) {
	now := time.Now()
	f.add(event{at: now, what: unpublish, lifespan: f.lifespan})
	f.add(event{at: now, what: unpublish, lifespan: f.former})
	if err := f.unpublish(ctx); err != nil {
		f.add(event{at: time.Now(), what: failed, text: fmt.Sprintf("unpublish: %v", err)})
		return
	}
	f.add(event{at: time.Now(), what: retained, lifespan: f.lifespan})
	if err := f.removeTargetDir(); err != nil {
		f.add(event{at: time.Now(), what: failed, text: err.Error()})
	}
}

// vanish removes the pod's directories. The daemon looks for them a few times
// within its grace time, so that it notices within twice that.
func (f *follower) vanish() {
	now := time.Now()
	if err := f.removeTargetDir(); err != nil {
		f.add(event{at: now, what: failed, text: err.Error()})
		return
	}
	f.add(event{at: now, what: unpublish, lifespan: f.former})
	f.add(event{at: now, until: now.Add(2 * f.grace), what: forget, lifespan: f.lifespan})
}
