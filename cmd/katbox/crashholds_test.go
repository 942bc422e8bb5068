package main

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/soak/story"
)

// crashGrace is the --release-grace of scenes in which that matters.
const crashGrace = time.Second

// decision is what a person decides about a retained volume.
type decision func(s *scene, v *playedVolume) error

// crashDecisions are operations of people. The volume's own deadline does not come before the crash.
func crashDecisions() []crashOperation {
	decided := func(name string, prepare func(*scene), d decision) crashOperation {
		return crashOperation{name: name, lives: time.Hour, alone: true, flags: []string{"--release-grace", crashGrace.String()},
			prepare: prepare, do: func(s *scene) error { return s.decide(s.last(), d) }}
	}
	andGone := func(op crashOperation, commits int) crashOperation {
		decide := op.do
		op.do = func(s *scene) error {
			if err := decide(s); err != nil {
				return err
			}
			return s.awaitDeleted(s.last(), commits)
		}
		return op
	}
	pinned := func(s *scene) {
		addRetained(s)
		s.must(pin("another bug")(s, s.last()))
	}
	unpin := func(s *scene, v *playedVolume) error {
		v.tell(story.Event{What: story.Decide})
		_, err := s.admin().Unpin(s.asked(), v.id)
		return v.decided("", err)
	}
	return []crashOperation{
		decided("pin", addRetained, pin("a bug")),
		decided("pin of a pinned volume", pinned, pin("a bug")),
		decided("unpin", pinned, unpin),
		andGone(decided("release", addRetained, release), 3),
		andGone(decided("release of a pinned volume", pinned, release), 3),
		andGone(decided("purge", addRetained, purge("a secret leaked")), 2),
		andGone(decided("purge of a pinned volume", pinned, purge("a secret leaked")), 2),
	}
}

func release(s *scene, v *playedVolume) error {
	released := volume.Released.String()
	v.tell(story.Event{What: story.LetGo, Text: released, Lifespan: crashGrace})
	_, err := s.admin().Release(s.asked(), v.id, "")
	v.released = v.released || err == nil
	return v.decided(released, err)
}

func purge(why string) decision {
	return func(s *scene, v *playedVolume) error {
		// No record says so: one that is purged is being deleted.
		const purged = "Purged"
		v.tell(story.Event{What: story.LetGo, Text: purged})
		return v.decided(purged, s.admin().Purge(s.asked(), v.id, why))
	}
}

func pin(why string) decision {
	return func(s *scene, v *playedVolume) error {
		pinned := volume.Pinned.String()
		v.tell(story.Event{What: story.Decide, Text: pinned})
		_, err := s.admin().Pin(s.asked(), v.id, time.Now().Add(2*time.Hour), why)
		return v.decided(pinned, err)
	}
}

// decided tells of an answer. Without one the volume is held as before, or as was asked.
func (v *playedVolume) decided(hold string, err error) error {
	if err == nil {
		v.tell(story.Event{What: story.Decided, Text: hold})
	}
	return err
}

// asked is the context of one request.
func (s *scene) asked() context.Context {
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	s.t.Cleanup(cancel)
	return ctx
}

// decide carries out a decision about a volume. A person who gets no answer decides the same again
// after the restart.
func (s *scene) decide(v *playedVolume, d decision) error {
	v.decide = func() error { return d(s, v) }
	return v.decide()
}

// decideAgain repeats the decision about a volume, if there was one. The volume may be gone by now.
func (s *scene) decideAgain(v *playedVolume) {
	s.t.Helper()
	if v.decide == nil {
		return
	}
	err := v.decide()
	if isGone(err) && v.story.MayBeGone(time.Now()) {
		return
	}
	s.must(err)
	known, _ := s.records(nil)
	v.lookAtRecord(known)
	s.judge("when a decision was repeated")
}

// isGone reports whether a request was refused because there is no such volume any more.
func isGone(err error) bool {
	var refused *api.Error
	return errors.As(err, &refused) && (refused.Code == http.StatusNotFound || refused.Code == http.StatusGone)
}
