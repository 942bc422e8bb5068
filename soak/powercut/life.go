package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/katbox/katbox/soak/internal/pause"
	"github.com/katbox/katbox/soak/internal/synced"
	"github.com/katbox/katbox/soak/story"
)

// lookPause is between two looks whether a volume has expired.
const lookPause = 50 * time.Millisecond

// errOver ends a life because the run is over.
var errOver = errors.New("the run is over")

// life is that of a volume, from its first publish until it has expired.
type life struct {
	churn *churn
	place
	random  *rand.Rand
	markers int
	// left is when the last unpublish was asked for.
	left time.Time
}

// live is the whole of it.
func (l *life) live(ctx context.Context) {
	err := l.stages(ctx)
	if err != nil && !errors.Is(err, errOver) && ctx.Err() == nil {
		l.churn.fail(l.volume, err)
	}
}

func (l *life) stages(ctx context.Context) error {
	for again := true; again; {
		if err := l.publish(ctx); err != nil {
			return err
		}
		if err := l.write(ctx); err != nil {
			return err
		}
		if err := l.unpublish(ctx); err != nil {
			return err
		}
		if again = l.random.IntN(3) == 0; again {
			// As a node does that was rebooted: mostly within the lifespan.
			if l.rest(ctx, min(l.lifespan, 3*time.Second)*11/10) != nil {
				return errOver
			}
		}
	}
	if err := l.RemoveTargetDir(); err != nil {
		return err
	}
	after := l.keeps()
	var err error
	switch {
	case l.Name == failing:
		after, err = releaseGrace, l.correct(ctx)
	case l.random.IntN(3) == 0:
		after, err = releaseGrace, l.attach(ctx)
	}
	if err != nil {
		return err
	}
	return l.expire(ctx, after)
}

// tell prints an ack of this volume.
func (l *life) tell(e story.Event) error {
	e.Volume = l.volume
	return l.churn.acks.add(e)
}

func (l *life) publish(ctx context.Context) error {
	if l.churn.quiet.wait(ctx) != nil {
		return errOver
	}
	if err := l.tell(story.Event{What: story.Publish}); err != nil {
		return err
	}
	if err := l.MakeTargetDir(); err != nil {
		return err
	}
	if err := l.repeat(func() error { return l.place.publish(ctx) }); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	replied := time.Now()
	found, err := count(l.Target(), l.volume, l.markers)
	if err != nil {
		return fmt.Errorf("published: %w", err)
	}
	l.markers = found
	if l.durable(ctx, replied) != nil {
		return errOver
	}
	return l.tell(story.Event{At: replied, What: story.Published, N: found})
}

// write leaves markers, or none, and then the volume as it is for a while.
func (l *life) write(ctx context.Context) error {
	for range l.random.IntN(4) {
		if l.rest(ctx, 100*time.Millisecond) != nil || l.churn.quiet.wait(ctx) != nil {
			return errOver
		}
		if err := synced.Write(l.Target(), synced.Name(l.markers+1), l.volume, l.markers+1); err != nil {
			return err
		}
		l.markers++
		if err := l.tell(story.Event{What: story.Wrote, N: l.markers}); err != nil {
			return err
		}
	}
	longest := 300 * time.Millisecond
	if l.random.IntN(4) == 0 {
		longest = 10 * time.Second
	}
	if l.rest(ctx, longest) != nil {
		return errOver
	}
	return nil
}

func (l *life) unpublish(ctx context.Context) error {
	if l.churn.quiet.wait(ctx) != nil {
		return errOver
	}
	l.left = time.Now()
	if err := l.tell(story.Event{At: l.left, What: story.Unpublish, Lifespan: l.keeps()}); err != nil {
		return err
	}
	if err := l.repeat(func() error { return l.place.unpublish(ctx) }); err != nil {
		return fmt.Errorf("unpublish: %w", err)
	}
	replied := time.Now()
	if l.durable(ctx, replied) != nil {
		return errOver
	}
	return l.tell(story.Event{At: replied, What: story.Retained, Lifespan: l.keeps()})
}

// repeat makes a call, and sometimes once more, which changes nothing.
func (l *life) repeat(call func() error) error {
	err := call()
	if err == nil && l.random.IntN(5) == 0 {
		err = call()
	}
	return err
}

// expire waits until the volume is gone, for some time without a look.
func (l *life) expire(ctx context.Context, after time.Duration) error {
	if pause.For(ctx, after) != nil {
		return errOver
	}
	for {
		before := time.Now()
		what, text := look(l.Data(), l.volume, l.markers)
		switch what {
		case story.Gone:
			return l.tell(story.Event{What: story.Gone})
		case story.Partial, story.Empty:
			return fmt.Errorf("retained, looked at at %s: %s %s", story.Clock(before), what, text)
		}
		if pause.For(ctx, lookPause) != nil {
			return errOver
		}
	}
}

// rest waits for a random time.
func (l *life) rest(ctx context.Context, longest time.Duration) error {
	return pause.For(ctx, time.Duration(l.random.Int64N(int64(longest))))
}
