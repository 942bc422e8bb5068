package main

import (
	"testing"
	"time"

	"github.com/katbox/katbox/soak/story"
)

// at is an event so many seconds after the beginning.
func at(second int64, what story.Verb) story.Event {
	e := story.Event{At: time.Unix(1700000000+second, 0), What: what, Lifespan: 10 * time.Second}
	e.Until = e.At
	return e
}

func TestTreat(t *testing.T) {
	t.Parallel()
	names := []string{"long/p/a", "long/p/b", "short/p/a", "short/p/b", "long/q/a", "long/q/b", "short/q/a", "short/q/b",
		"long/r/a", "long/r/b"}
	for _, test := range []struct {
		name   string
		events []story.Event
		want   []treatment
	}{
		{"published", []story.Event{at(0, story.Publish), at(1, story.Published)}, []treatment{treatHold}},
		{"asked for", []story.Event{at(0, story.Publish)}, []treatment{treatForget, treatUnpublish, treatPublish}},
		{"leaving", []story.Event{at(0, story.Publish), at(1, story.Published), at(2, story.Unpublish)},
			[]treatment{treatForget, treatUnpublish, treatPublish}},
		{"retained", []story.Event{at(0, story.Publish), at(1, story.Published), at(2, story.Unpublish), at(3, story.Retained)},
			[]treatment{treatWait, treatUnpublish, treatPublish}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := story.New(time.Second)
			for _, e := range test.events {
				s.Add(e)
			}
			got := map[treatment]bool{}
			for _, name := range names {
				got[treat(s, name, true)] = true
				if treat(s, name, false) == treatForget {
					t.Error("a pod with another volume is forgotten")
				}
			}
			if len(got) != len(test.want) {
				t.Errorf("treatments %v, want %v", got, test.want)
			}
			for _, want := range test.want {
				if !got[want] {
					t.Errorf("treatments %v, want %v", got, test.want)
				}
			}
		})
	}
}
