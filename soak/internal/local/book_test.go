package local

import (
	"slices"
	"strings"
	"testing"
)

func of(what Verb, name string, size int64) Event {
	return Event{What: what, Pool: "p", Name: name, Size: size}
}

func says(what Verb, text string) Event { return Event{What: what, Pool: "p", Name: "a", Text: text} }

// TestBook: what is in a pool has to fit what was answered, and may fit what was asked for and not answered.
func TestBook(t *testing.T) {
	t.Parallel()
	made := []Event{of(Make, "a", 10), of(Made, "a", 10)}
	snapshot := append(slices.Clip(made),
		Event{What: Make, Pool: "p", Name: "s", Size: 10, From: "a", Snapshot: true}, Event{What: Made, Pool: "p", Name: "s", Size: 10})
	a, s := found{Name: "a", Size: 10, Ready: true}, found{Name: "s", Size: 10, Of: "a", Ready: true}
	grown := found{Name: "a", Size: 20, Ready: true}
	kept := found{Name: "a", Size: 10, Ready: true, Comment: "kept"}
	for _, test := range []struct {
		name      string
		events    [][]Event
		volumes   []found
		snapshots []found
		// promised is what the pool of 100 bytes says, 0 the sum; broken a part of the violation, empty for none.
		promised int64
		broken   string
	}{
		{"made", [][]Event{made}, []found{a}, nil, 0, ""},
		{"made, and gone", [][]Event{made}, nil, nil, 0, "it is gone"},
		{"asked for, and there", [][]Event{made[:1]}, []found{a}, nil, 0, ""},
		{"asked for, and not there", [][]Event{made[:1]}, nil, nil, 0, ""},
		{"asked for, and never whole", [][]Event{made[:1]}, []found{{Name: "a", Size: 10}}, nil, 0, "not whole"},
		{"refused, and there", [][]Event{made[:1], {of(Refused, "a", 0)}}, []found{a}, nil, 0, "is there"},
		{"not asked for", nil, []found{a}, nil, 0, "nobody has made"},
		{"a volume that is a snapshot", [][]Event{made}, nil, []found{a}, 0, "nobody has made"},
		{"growing, and not grown", [][]Event{made, {of(Grow, "a", 20)}}, []found{a}, nil, 0, ""},
		{"growing, and promised that", [][]Event{made, {of(Grow, "a", 20)}}, []found{a}, nil, 20, ""},
		{"growing, and promised more", [][]Event{made, {of(Grow, "a", 20)}}, []found{a}, nil, 30, "has promised 30"},
		{"growing, and grown", [][]Event{made, {of(Grow, "a", 20)}}, []found{grown}, nil, 0, ""},
		{"grown, and not grown", [][]Event{made, {of(Grow, "a", 20), of(Grown, "a", 20)}}, []found{a}, nil, 0, "should have between 20 and 20"},
		{"not asked to grow", [][]Event{made}, []found{grown}, nil, 0, "should have between 10 and 10"},
		{"no room to grow", [][]Event{made, {of(Grow, "a", 20), of(Kept, "a", 0)}}, []found{grown}, nil, 0, "between 10 and 10"},
		{"about to be retained", [][]Event{made, {says(Say, "kept")}}, []found{a}, nil, 0, ""},
		{"retained without an answer", [][]Event{made, {says(Say, "kept")}}, []found{kept}, nil, 0, ""},
		{"retained, and forgotten", [][]Event{made, {says(Say, "kept"), says(Said, "kept")}}, []found{a}, nil, 0, "the comment"},
		{"restored, and retained", [][]Event{made, {says(Say, "kept"), says(Said, "kept"), says(Say, ""), says(Said, "")}},
			[]found{kept}, nil, 0, "the comment"},
		{"being deleted, and there", [][]Event{made, {of(Delete, "a", 0)}}, []found{a}, nil, 0, ""},
		{"being deleted, and gone", [][]Event{made, {of(Delete, "a", 0)}}, nil, nil, 0, ""},
		{"deleted, and back", [][]Event{made, {of(Delete, "a", 0), of(Deleted, "a", 0)}}, []found{a}, nil, 0, "is there"},
		{"a snapshot", [][]Event{snapshot}, []found{a}, []found{s}, 0, ""},
		{"a snapshot of another", [][]Event{snapshot}, []found{a}, []found{{Name: "s", Size: 10, Of: "b", Ready: true}}, 0, "a snapshot of b"},
		{"promised too little", [][]Event{made}, []found{a}, nil, 5, "has promised 5"},
		{"promised too much", [][]Event{made}, []found{a}, nil, 20, "has promised 20"},
		{"promised more than there is", [][]Event{{of(Make, "a", 200), of(Made, "a", 200)}}, []found{{Name: "a", Size: 200, Ready: true}}, nil, 0,
			"of 100 bytes has promised 200"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var b Book
			for _, e := range slices.Concat(test.events...) {
				if err := b.Add(e); err != nil {
					t.Fatal(err)
				}
			}
			promised := test.promised
			if promised == 0 {
				for _, f := range append(slices.Clip(test.volumes), test.snapshots...) {
					promised += f.Size
				}
			}
			found := b.compare("p", pool{Total: 100, Provisioned: promised}, test.volumes, test.snapshots)
			switch {
			case test.broken == "" && len(found) > 0:
				t.Errorf("violations: %+v", found)
			case test.broken != "" && (len(found) != 1 || !strings.Contains(found[0].What, test.broken)):
				t.Errorf("violations: %+v, want one with %q", found, test.broken)
			}
		})
	}
}

// TestContent: a copy begins with what was synced in its origin, and what comes later is of one of them alone.
func TestContent(t *testing.T) {
	t.Parallel()
	var b Book
	for _, e := range []Event{
		of(Make, "a", 10), of(Made, "a", 10), {What: Wrote, Name: "a", N: 2},
		{What: Make, Pool: "p", Name: "s", From: "a", Snapshot: true},
		{What: Wrote, Name: "a", N: 3},
		{What: Make, Pool: "p", Name: "c", From: "s"}, {What: Wrote, Name: "c", N: 1},
	} {
		if err := b.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string][]written{"a": {{"a", 3}}, "s": {{"a", 2}, {"s", 0}}, "c": {{"a", 2}, {"s", 0}, {"c", 1}}} {
		if got := b.entries[name].content(); !slices.Equal(got, want) {
			t.Errorf("%s has %v, want %v", name, got, want)
		}
	}
	if b.Add(of(Made, "x", 1)) == nil || b.Add(of(Make, "a", 1)) == nil {
		t.Error("what was never made, or is made twice, makes sense")
	}
}
