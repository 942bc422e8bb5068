package local

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/katbox/katbox/soak/internal/synced"
	"github.com/katbox/katbox/soak/story"
)

func event(what story.Verb, kind, name string, n int, text string) story.Event {
	return story.Event{What: what, Volume: nameOf("p", kind, name), N: n, Text: text}
}

func of(what story.Verb, n int) story.Event { return event(what, volumes, "a", n, "") }

func says(what story.Verb, text string) story.Event { return event(what, volumes, "a", 0, text) }

// TestLook: what a pool has goes to the stories, and has to fit what they promise.
func TestLook(t *testing.T) {
	t.Parallel()
	made := []story.Event{of(story.Create, 10), of(story.Created, 10)}
	snapshot := append(slices.Clip(made),
		event(story.Create, snapshots, "s", 10, nameOf("p", volumes, "a")), event(story.Created, snapshots, "s", 10, ""))
	a, s := found{Name: "a", Size: 10, Ready: true}, found{Name: "s", Size: 10, Of: "a", Ready: true}
	grown := found{Name: "a", Size: 20, Ready: true}
	kept := found{Name: "a", Size: 10, Ready: true, Comment: "kept"}
	for _, test := range []struct {
		name      string
		events    [][]story.Event
		volumes   []found
		snapshots []found
		// promised is what the pool of 100 bytes says, 0 the sum; broken a part of the violation, empty for none.
		promised int64
		broken   string
	}{
		{"made", [][]story.Event{made}, []found{a}, nil, 0, ""},
		{"made, and gone", [][]story.Event{made}, nil, nil, 0, "pool/p/volumes/a: at"},
		{"made, and in another pool", [][]story.Event{{event(story.Create, "volumes", "../../q/volumes/a", 10, "")}}, []found{a}, nil, 0,
			"that may only be: nothing"},
		{"asked for, and there", [][]story.Event{made[:1]}, []found{a}, nil, 0, ""},
		{"asked for, and not there", [][]story.Event{made[:1]}, nil, nil, 0, ""},
		{"asked for, and never whole", [][]story.Event{made[:1]}, []found{{Name: "a", Size: 10}}, nil, 0, "not whole"},
		{"refused, and there", [][]story.Event{made[:1], {of(story.Refused, 0)}}, []found{a}, nil, 0, "that may only be: nothing"},
		{"not asked for", nil, []found{a}, nil, 0, "that may only be: nothing"},
		{"a volume that is a snapshot", [][]story.Event{made[:1]}, nil, []found{{Name: "a", Size: 10, Of: "b", Ready: true}}, 0,
			"that may only be: nothing"},
		{"growing, and not grown", [][]story.Event{made, {of(story.Grow, 20)}}, []found{a}, nil, 0, ""},
		{"growing, and promised that", [][]story.Event{made, {of(story.Grow, 20)}}, []found{a}, nil, 20, ""},
		{"growing, and promised more", [][]story.Event{made, {of(story.Grow, 20)}}, []found{a}, nil, 30, "has promised 30"},
		{"growing, and grown", [][]story.Event{made, {of(story.Grow, 20)}}, []found{grown}, nil, 0, ""},
		{"growing, grown, and promised more", [][]story.Event{made, {of(story.Grow, 20)}}, []found{grown}, nil, 21, "has promised 21"},
		{"grown, and not grown", [][]story.Event{made, {of(story.Grow, 20), of(story.Grown, 20)}}, []found{a}, nil, 0,
			"should have between 20 and 20"},
		{"not asked to grow", [][]story.Event{made}, []found{grown}, nil, 0, "should have between 10 and 10"},
		{"no room to grow", [][]story.Event{made, {of(story.Grow, 20), of(story.Refused, 0)}}, []found{grown}, nil, 0, "between 10 and 10"},
		{"about to be retained", [][]story.Event{made, {says(story.Decide, "kept")}}, []found{a}, nil, 0, ""},
		{"retained without an answer", [][]story.Event{made, {says(story.Decide, "kept")}}, []found{kept}, nil, 0, ""},
		{"retained, and forgotten", [][]story.Event{made, {says(story.Decide, "kept"), says(story.Decided, "kept")}}, []found{a}, nil, 0,
			"that may only be: volume, held as kept"},
		{"restored, and retained", [][]story.Event{made, {says(story.Decide, "kept"), says(story.Decided, "kept"), says(story.Decide, ""),
			says(story.Decided, "")}}, []found{kept}, nil, 0, "there is: volume, held as kept"},
		{"being deleted, and there", [][]story.Event{made, {of(story.Delete, 0)}}, []found{a}, nil, 0, ""},
		{"being deleted, and gone", [][]story.Event{made, {of(story.Delete, 0)}}, nil, nil, 0, ""},
		{"deleted, and back", [][]story.Event{made, {of(story.Delete, 0), of(story.Deleted, 0)}}, []found{a}, nil, 0,
			"that may only be: nothing"},
		{"a snapshot", [][]story.Event{snapshot}, []found{a}, []found{s}, 0, ""},
		{"a snapshot, and gone", [][]story.Event{snapshot}, []found{a}, nil, 0, "pool/p/snapshots/s: at"},
		{"a snapshot of another", [][]story.Event{snapshot}, []found{a}, []found{{Name: "s", Size: 10, Of: "b", Ready: true}}, 0,
			"a snapshot of b"},
		{"promised too little", [][]story.Event{made}, []found{a}, nil, 5, "has promised 5"},
		{"promised too much", [][]story.Event{made}, []found{a}, nil, 20, "has promised 20"},
		{"promised more than there is", [][]story.Event{{of(story.Create, 200), of(story.Created, 200)}},
			[]found{{Name: "a", Size: 200, Ready: true}}, nil, 0, "of 100 bytes has promised 200"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := bookOf(t, slices.Concat(test.events...)...)
			has := contents{pool: pool{Total: 100, Provisioned: test.promised}, volumes: test.volumes, snapshots: test.snapshots}
			for _, f := range slices.Concat(test.volumes, test.snapshots) {
				if test.promised == 0 {
					has.pool.Provisioned += f.Size
				}
			}
			found := append(b.look("p", has), b.broken()...)
			switch {
			case test.broken == "" && len(found) > 0:
				t.Errorf("violations: %+v", found)
			case test.broken != "" && (len(found) != 1 || !strings.Contains(found[0].What, test.broken)):
				t.Errorf("violations: %+v, want one with %q", found, test.broken)
			}
		})
	}
}

// bookOf tells the stories of a book.
func bookOf(t *testing.T, events ...story.Event) book {
	t.Helper()
	b := make(book)
	for _, e := range events {
		if err := b.add(e); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// TestContent: a copy begins with what was synced in its origin, and what comes later is of one of them alone.
func TestContent(t *testing.T) {
	t.Parallel()
	b := bookOf(t, of(story.Create, 10), of(story.Created, 10), of(story.Wrote, 2),
		event(story.Create, snapshots, "s", 10, nameOf("p", volumes, "a")), of(story.Wrote, 3),
		event(story.Create, volumes, "c", 10, nameOf("p", snapshots, "s")), event(story.Wrote, volumes, "c", 1, ""))
	for name, want := range map[string][]written{
		nameOf("p", volumes, "a"):   {{"a", 3}},
		nameOf("p", snapshots, "s"): {{"a", 2}, {"s", 0}},
		nameOf("p", volumes, "c"):   {{"a", 2}, {"s", 0}, {"c", 1}},
	} {
		if got := b[name].content(); !slices.Equal(got, want) {
			t.Errorf("%s has %v, want %v", name, got, want)
		}
	}
	if b.add(event(story.Created, volumes, "x", 1, "")) == nil || b.add(of(story.Create, 1)) == nil {
		t.Error("what was never made, or is made twice, makes sense")
	}
}

// TestVerify: a marker that is not there, or is another one, breaks the story, and what is whole does not.
func TestVerify(t *testing.T) {
	t.Parallel()
	const told = "pool/p/volumes/a"
	dir := t.TempDir()
	p := &Player{count: make(map[story.Verb]int), book: bookOf(t, of(story.Create, 10), of(story.Created, 10), of(story.Wrote, 1))}
	if err := errors.Join(synced.Write(dir, fileName("a", 1), "a", 1), p.verify(told, dir)); err != nil || p.book[told].Broken() != "" {
		t.Errorf("whole: %v, %s", err, p.book[told].Broken())
	}
	if err := synced.Write(dir, fileName("a", 1), "a", 2); err != nil {
		t.Fatal(err)
	}
	if err := p.verify(told, dir); err == nil || !strings.Contains(p.book[told].Broken(), "marker 1 of 1 of a") {
		t.Errorf("another marker: %v, %q", err, p.book[told].Broken())
	}
}

// TestAuditWithoutANode: what broke before is reported also if no node answers in the end.
func TestAuditWithoutANode(t *testing.T) {
	t.Parallel()
	p := &Player{Config: Config{Controller: &Controller{}}, count: make(map[story.Verb]int),
		book: bookOf(t, of(story.Create, 10), of(story.Created, 11))}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	all, err := p.Audit(ctx)
	if !errors.Is(err, context.Canceled) || len(all) != 1 || !strings.Contains(all[0].What, "it has 11 bytes") {
		t.Errorf("%v, %+v", err, all)
	}
}
