package main

import (
	"slices"
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

// TestDecidedIsLeftAlone: what another pod may have attached, or a person has decided about, waits for them; and a pod
// with the only word about its volume does not vanish.
func TestDecidedIsLeftAlone(t *testing.T) {
	t.Parallel()
	left := []story.Verb{story.Publish, story.Published, story.Unpublish, story.Retained}
	for name, tt := range map[string]struct {
		volume   string
		then     []story.Verb
		decided  bool
		attached bool
	}{
		"retained":        {"a", nil, false, false},
		"to be attached":  {"a", []story.Verb{story.Attach}, true, true},
		"attached":        {"a", []story.Verb{story.Attach, story.Attached}, true, true},
		"to be detached":  {"a", []story.Verb{story.Attach, story.Attached, story.Detach}, true, true},
		"detached":        {"a", []story.Verb{story.Attach, story.Attached, story.Detach, story.Detached}, true, false},
		"let go":          {"a", []story.Verb{story.LetGo}, true, false},
		"failed":          {failing, []story.Verb{story.LetGo, story.Decide, story.Decided}, true, false},
		"perhaps failing": {failing, nil, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := testNode(t)
			c := &checker{nodes: []*node{n}, findings: &findings{}}
			var acks []story.Event
			for i, what := range append(slices.Clip(left), tt.then...) {
				e := at(int64(i), what)
				e.Volume, e.Text = n.place("pod", tt.volume).volume, ""
				if what == story.Attach {
					e.Text = "looking"
				}
				acks = append(acks, e)
			}
			if err := c.read(options{}, acks); err != nil {
				t.Fatal(err)
			}
			f := c.followers[acks[0].Volume]
			if f.decided != tt.decided || tt.decided && f.treatment != treatWait || (f.by != nil) != tt.attached {
				t.Errorf("decided %t, attached by %v, treatment %s", f.decided, f.by, f.treatment)
			}
			if tt.attached && (f.by.Pod != "looking" || f.by.attributes["attach"] != "pod/a") {
				t.Errorf("attached by %+v", f.by)
			}
		})
	}
}

// TestRecorded: without a record is found what was published for the first time just before the cut, or once more after the
// volume of before may have ended.
func TestRecorded(t *testing.T) {
	t.Parallel()
	left := []story.Event{at(0, story.Publish), at(1, story.Published), at(2, story.Unpublish), at(3, story.Retained)}
	for name, tt := range map[string]struct {
		then []story.Event
		want bool
	}{
		"retained":                   {nil, true},
		"asked for before it ends":   {[]story.Event{at(8, story.Publish)}, true},
		"asked for after its end":    {[]story.Event{at(14, story.Publish)}, false},
		"published once more":        {[]story.Event{at(8, story.Publish), at(9, story.Published)}, true},
		"over, and not asked for":    {[]story.Event{at(5, story.Ready), at(20, story.Ready)}, true},
		"leaving for the first time": {[]story.Event{at(8, story.Publish), at(9, story.Published), at(10, story.Unpublish)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &follower{Story: story.New(time.Second), recorded: true}
			for _, e := range append(slices.Clip(left), tt.then...) {
				f.Add(e)
			}
			last := f.Told()[len(f.Told())-1].At
			if f.cut(last); f.recorded != tt.want {
				t.Errorf("a record is wanted: %t, want %t", f.recorded, tt.want)
			}
			if f.Broken() != "" {
				t.Error(f.Broken())
			}
		})
	}
}
