package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/soak/internal/pause"
	"github.com/katbox/katbox/soak/story"
)

const (
	// failing is the name of a volume that is kept for asked, and for no longer than succeeded if its pod succeeds. The
	// kubelet says that it does, and then that it has failed.
	failing   = "failing"
	asked     = 10 * time.Minute
	succeeded = time.Minute // the daemon's lifespans are whole minutes
	// releaseGrace is how long the daemons keep what a person lets go.
	releaseGrace = 3 * time.Second
)

// What the daemon says of a retained volume.
const (
	phaseRetained = "Retained"
	holdReleased  = "Released"
	podSucceeded  = "Succeeded"
	podFailed     = "Failed"
)

// correct lets the kubelet say that the pod of a retained volume has succeeded, and then that it has failed: then the
// volume is kept for as long as before. In the end a person lets it go.
func (l *life) correct(ctx context.Context) error {
	if l.churn.quiet.wait(ctx) != nil {
		return errOver
	}
	if err := l.tell(story.Event{At: l.left, What: story.LetGo, Text: podSucceeded, Lifespan: succeeded}); err != nil {
		return err
	}
	if err := l.outcome(ctx, podSucceeded); err != nil {
		return err
	}
	if l.rest(ctx, time.Second) != nil || l.churn.quiet.wait(ctx) != nil {
		return errOver
	}
	if err := l.tell(story.Event{At: l.left, What: story.Decide, Text: podFailed, Lifespan: asked}); err != nil {
		return err
	}
	if err := l.outcome(ctx, podFailed); err != nil {
		return err
	}
	if err := l.tell(story.Event{What: story.Decided, Text: podFailed}); err != nil {
		return err
	}
	if l.rest(ctx, 5*time.Second) != nil {
		return errOver
	}
	return l.letGo(ctx)
}

// outcome says how the pod ended, and waits until the daemon says so as well.
func (l *life) outcome(ctx context.Context, phase string) error {
	l.pods.Say(l.Pod, phase, l.Name)
	limited, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	for {
		known, err := l.admin.Volume(limited, l.ID)
		switch {
		case err == nil && known.Outcome == phase:
			return nil
		case pause.For(limited, busyPause) != nil:
			return fmt.Errorf("the daemon says that the pod is %q, and it is %s: %w", known.Outcome, phase, err)
		}
	}
}

// letGo is a person that lets a retained volume go.
func (l *life) letGo(ctx context.Context) error {
	if l.churn.quiet.wait(ctx) != nil {
		return errOver
	}
	if err := l.tell(story.Event{What: story.LetGo, Text: holdReleased, Lifespan: releaseGrace}); err != nil {
		return err
	}
	switch err := l.release(ctx); {
	case isGone(err): // its deadline came first
		return nil
	case err != nil:
		return fmt.Errorf("release: %w", err)
	}
	return l.tell(story.Event{What: story.Decided, Text: holdReleased})
}

// release lets a retained volume go. It is repeated while the daemon is busy with the volume.
func (p place) release(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	return pause.Until(limited, busyPause, func() (bool, error) {
		_, err := p.admin.Release(limited, p.ID, "")
		var refused *api.Error
		return err == nil || isGone(err) || !errors.As(err, &refused), err
	})
}

// isGone reports whether the daemon has no such volume any more.
func isGone(err error) bool {
	var refused *api.Error
	return errors.As(err, &refused) && (refused.Code == http.StatusNotFound || refused.Code == http.StatusGone)
}

// stated looks at what the daemon says after the boot of a retained volume: what was decided about it, and when it goes.
// Of one that goes it still says what was known before.
func (f *follower) stated(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	now := time.Now()
	known, err := f.admin.Volume(limited, f.ID)
	switch {
	case isGone(err): // the next look judges that
		return
	case err != nil:
		f.Add(story.Event{At: now, Until: time.Now(), What: story.Failed, Text: fmt.Sprintf("the daemon says of it: %v", err)})
		return
	case known.Phase != phaseRetained, f.MayBeGone(time.Now()):
		return
	}
	held := known.Outcome
	if known.Hold != nil {
		held = known.Hold.Kind
	}
	f.Add(story.Event{At: now, Until: time.Now(), What: story.KnownKept, Text: held})
	if ends := known.ExpiresAt; ends != nil && f.Broken() == "" && ends.Before(f.Earliest().Add(-sameLife)) {
		f.Add(story.Event{At: now, Until: time.Now(), What: story.Failed,
			Text: fmt.Sprintf("it is to go at %s, and its deadline is %s at the earliest", story.Clock(*ends), story.Clock(f.Earliest()))})
	}
}

// letGo is [life.letGo] after the boot.
func (f *follower) letGo(ctx context.Context) {
	f.Add(story.Event{At: time.Now(), What: story.LetGo, Text: holdReleased, Lifespan: releaseGrace})
	switch err := f.release(ctx); {
	case err == nil:
		f.Add(story.Event{At: time.Now(), What: story.Decided, Text: holdReleased})
	case isGone(err) && f.MayBeGone(time.Now()):
	default:
		f.Add(story.Event{At: time.Now(), What: story.Failed, Text: fmt.Sprintf("release: %v", err)})
	}
}
