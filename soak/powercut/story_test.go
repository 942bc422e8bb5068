package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// The tests tell stories with a lifespan of ten seconds and a tolerance of three.
const (
	testLifespan  = 10 * time.Second
	testTolerance = 3 * time.Second
)

// at is an event so many seconds after the beginning. A look takes half a second.
func at(second float64, what verb, n ...int) event {
	e := event{at: time.Unix(1700000000, 0).Add(time.Duration(second * float64(time.Second))), what: what, lifespan: testLifespan}
	e.until = e.at.Add(500 * time.Millisecond)
	if len(n) > 0 {
		e.n = n[0]
	}
	return e
}

// shortly is an event after the boot, when the daemon has a lifespan of a second.
func shortly(e event) event {
	e.lifespan = time.Second
	return e
}

func TestStory(t *testing.T) {
	t.Parallel()
	// Published with two markers at second 3; and retained at 5.
	live := []event{at(0, publish), at(1, published), at(2, wrote, 1), at(3, wrote, 2)}
	left := append(slices.Clip(live), at(4, unpublish), at(5, retained))
	boot := []event{at(6, cut), at(7, ready)}
	for _, test := range []struct {
		name   string
		events [][]event
		// broken is a part of the violation, empty for none.
		broken string
	}{
		{"published, and never gone", [][]event{live, boot, {at(8, whole), at(1000, whole)}}, ""},
		{"published, gone before the daemon is there", [][]event{live, {at(6, cut), at(6, gone)}}, "published, and its data is gone"},
		{"published, deleted much later", [][]event{live, boot, {at(8, whole), at(1000, gone)}}, "published, and its data is gone"},
		{"published, not whole", [][]event{live, boot, {at(8, partial)}}, "not whole"},
		{"published without data, no directory", [][]event{{at(0, publish), at(1, published)}, boot,
			{at(8, gone), at(9, publish), at(10, published)}}, ""},
		{"published again without data", [][]event{live, boot, {at(8, publish), at(9, published, 0)}}, "published, and its data is gone"},
		{"published again with half of the data", [][]event{live, boot, {at(8, publish), at(9, published, 1)}}, "1 of 2 markers"},
		{"published again, unpublished, in time", [][]event{live, boot, {
			at(8, publish), at(9, published, 2), shortly(at(10, unpublish)), shortly(at(10.5, retained)), at(10.6, whole),
			at(11, gone), at(12, ended)}}, ""},
		{"published again, unpublished, gone at once", [][]event{live, boot, {
			at(8, publish), at(9, published, 2), shortly(at(10, unpublish)), shortly(at(10.1, retained)), at(10.2, gone)}}, "at the earliest"},

		{"retained, in time", [][]event{left, boot, {at(8, whole), at(13.4, whole), at(14, gone), at(15, ended)}}, ""},
		{"retained, within the tolerance", [][]event{left, boot, {at(18, whole), at(19, gone), at(20, ended)}}, ""},
		{"retained, gone early", [][]event{left, boot, {at(13.4, gone)}}, "at the earliest"},
		{"retained, gone early without a daemon", [][]event{left, {at(6, cut), at(6, gone)}}, "at the earliest"},
		{"retained, kept too long", [][]event{left, boot, {at(18.1, whole)}}, "at the latest"},
		{"retained, kept for ever", [][]event{left, boot, {at(8, whole), at(9, ended)}}, "for ever"},
		{"retained, nobody could delete it", [][]event{left,
			{at(6, cut), at(99, whole), at(100, ready), at(102, whole), at(102, gone), at(104, ended)}}, ""},
		{"retained, the daemon was there too long", [][]event{left, {at(6, cut), at(100, ready), at(103.1, whole)}}, "at the latest"},
		{"retained, not whole", [][]event{left, boot, {at(8, partial)}}, "not whole"},
		{"retained, unpublished again", [][]event{left, boot, {at(8, unpublish), at(9, retained), at(18.1, whole)}}, "at the latest"},
		{"retained, unpublished again by a daemon with another lifespan", [][]event{left, boot, {
			shortly(at(8, unpublish)), shortly(at(8.1, retained)), at(10, gone)}}, "at the earliest"},
		{"retained, published again too late", [][]event{left, boot, {at(14, publish), at(15, published, 0)}}, ""},
		{"retained, published again too late, promises no data",
			[][]event{left, boot, {at(14, publish), at(15, published, 0), at(16, gone)}}, ""},
		{"retained, published again in time without data", [][]event{left, boot, {at(12, publish), at(13, published, 0)}}, "at the earliest"},
		{"retained, published again, stays", [][]event{left, boot, {at(12, publish), at(13, published, 2), at(1000, whole)}}, ""},
		{"retained, published again, goes at the old deadline",
			[][]event{left, boot, {at(12, publish), at(13, published, 2), at(16, gone)}}, "published, and its data is gone"},

		{"expired, does not come back", [][]event{left, {at(14, gone)},
			{at(15, cut), at(15, gone), at(16, ready), at(17, gone), at(18, ended)}}, ""},
		{"expired, its end was not on the disk", [][]event{left, {at(14, gone)},
			{at(15, cut), at(15, whole), at(16, ready), at(16.1, whole), at(17, gone), at(18, ended)}}, ""},
		{"expired, comes back", [][]event{left, {at(14, gone)}, {at(15, cut), at(16, ready), at(17, gone), at(18, whole)}}, "came back"},
		{"expired, kept for another lifespan", [][]event{left, {at(14, gone)},
			{at(15, cut), at(15, whole), at(16, ready), at(19.1, whole)}}, "at the latest"},
		{"expired during the run, early", [][]event{left, {at(13.4, gone)}}, "at the earliest"},

		{"asked for, not there", [][]event{{at(0, publish)}, boot, {at(8, gone), at(9, publish), at(10, published)}}, ""},
		{"asked for, there", [][]event{{at(0, publish)}, boot,
			{at(8, whole), shortly(at(9, unpublish)), shortly(at(10, retained)), at(11, gone), at(12, ended)}}, ""},
		{"asked for, kept for ever", [][]event{{at(0, publish)}, boot,
			{shortly(at(9, unpublish)), shortly(at(10, retained)), at(14.1, whole)}}, "at the latest"},
		{"asked for, comes back", [][]event{{at(0, publish)}, boot,
			{shortly(at(9, unpublish)), shortly(at(10, retained)), at(11, gone), at(12, whole)}}, "came back"},

		{"leaving, still published", [][]event{live, {at(4, unpublish)}, boot, {at(8, whole), at(1000, whole)}}, ""},
		{"leaving, retained by then", [][]event{live, {at(4, unpublish)}, boot, {at(13.5, gone), at(15, ended)}}, ""},
		{"leaving, gone early", [][]event{live, {at(4, unpublish)}, boot, {at(13.4, gone)}}, "at the earliest"},
		{"leaving, unpublished again, either deadline", [][]event{live, {at(4, unpublish)}, boot, {
			shortly(at(8, unpublish)), shortly(at(8.5, retained)), at(9, gone), at(10, ended)}}, ""},
		{"leaving, unpublished again, the old deadline", [][]event{live, {at(4, unpublish)}, boot, {
			shortly(at(8, unpublish)), shortly(at(8.5, retained)), at(16, whole), at(18.5, gone), at(19, ended)}}, ""},
		{"leaving, unpublished again, too late for either", [][]event{live, {at(4, unpublish)}, boot, {
			shortly(at(8, unpublish)), shortly(at(8.5, retained)), at(19.1, whole)}}, "at the latest"},
		{"leaving, unpublished again, too early for either", [][]event{live, {at(4, unpublish)}, boot, {
			shortly(at(8, unpublish)), shortly(at(8.1, retained)), at(8.4, gone)}}, "at the earliest"},

		{"returning, goes at its deadline", [][]event{left, {at(5.5, publish)}, boot, {at(14, gone)}}, ""},
		{"returning, stays", [][]event{left, {at(5.5, publish)}, boot, {at(1000, whole)}}, ""},
		{"returning, gone early", [][]event{left, {at(5.5, publish)}, boot, {at(13, gone)}}, "at the earliest"},
		{"returned, gone at the old deadline", [][]event{left, {at(5.5, publish), at(5.6, published, 2)}, boot, {at(14, gone)}},
			"published, and its data is gone"},
		// It was seen after the old deadline, so it is published and stays so.
		{"returning, seen late, goes then", [][]event{left, {at(5.5, publish)}, boot, {at(18.1, whole), at(19, gone)}},
			"published, and its data is gone"},

		{"forgotten, retained", [][]event{{at(0, publish)}, boot, {shortly(forgotten(8, 14)), at(9, whole), at(15, gone), at(16, ended)}}, ""},
		{"forgotten, kept for ever", [][]event{{at(0, publish)}, boot, {shortly(forgotten(8, 14)), at(18.1, whole)}}, "at the latest"},
		{"forgotten with data, gone at once", [][]event{live, {at(4, unpublish)}, boot,
			{shortly(forgotten(8, 14)), at(8.1, gone)}}, "at the earliest"},

		{"a failure", [][]event{live, {at(4, failed)}}, "an answer"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newStory(testTolerance)
			for _, part := range test.events {
				for _, e := range part {
					e.text = "an answer"
					s.add(e)
				}
			}
			if test.broken == "" && s.broken != "" {
				t.Errorf("it is said to be broken: %s", s.broken)
			}
			if test.broken != "" && !strings.Contains(s.broken, test.broken) {
				t.Errorf("violation %q, want one with %q", s.broken, test.broken)
			}
		})
	}
}

// forgotten is the end of a pod's directory, noticed by another time at the latest.
func forgotten(second, noticed float64) event {
	e := at(second, forget)
	e.until = at(noticed, forget).at
	return e
}

// TestTold: of many looks only the first and the last are told.
func TestTold(t *testing.T) {
	t.Parallel()
	s := newStory(testTolerance)
	for i, what := range []verb{publish, published, cut, whole, whole, whole, whole, gone, gone, gone, ended} {
		s.add(at(float64(i), what))
	}
	var told []string
	for _, e := range s.told() {
		told = append(told, string(e.what))
	}
	if got, want := strings.Join(told, " "), "publish published cut whole whole gone gone end"; got != want {
		t.Errorf("told %q, want %q", got, want)
	}
}

func TestTreat(t *testing.T) {
	t.Parallel()
	names := []string{"long/p/a", "long/p/b", "short/p/a", "short/p/b", "long/q/a", "long/q/b", "short/q/a", "short/q/b",
		"long/r/a", "long/r/b"}
	for _, test := range []struct {
		name   string
		events []event
		want   []treatment
	}{
		{"published", []event{at(0, publish), at(1, published)}, []treatment{treatHold}},
		{"asked for", []event{at(0, publish)}, []treatment{treatForget, treatUnpublish, treatPublish}},
		{"leaving", []event{at(0, publish), at(1, published), at(2, unpublish)}, []treatment{treatForget, treatUnpublish, treatPublish}},
		{"retained", []event{at(0, publish), at(1, published), at(2, unpublish), at(3, retained)},
			[]treatment{treatWait, treatUnpublish, treatPublish}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newStory(testTolerance)
			for _, e := range test.events {
				s.add(e)
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
