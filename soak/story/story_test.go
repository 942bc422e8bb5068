package story

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
func at(second float64, what Verb, n ...int) Event {
	e := Event{At: time.Unix(1700000000, 0).UTC().Add(time.Duration(second * float64(time.Second))), What: what, Lifespan: testLifespan}
	e.Until = e.At.Add(500 * time.Millisecond)
	if len(n) > 0 {
		e.N = n[0]
	}
	return e
}

// shortly is an event after the boot, when the daemon has a lifespan of a second.
func shortly(e Event) Event {
	e.Lifespan = time.Second
	return e
}

func TestStory(t *testing.T) {
	t.Parallel()
	// Published with two markers at second 3; and retained at 5.
	live := []Event{at(0, Publish), at(1, Published), at(2, Wrote, 1), at(3, Wrote, 2)}
	left := append(slices.Clip(live), at(4, Unpublish), at(5, Retained))
	boot := []Event{at(6, Cut), at(7, Ready)}
	for _, test := range []struct {
		name   string
		events [][]Event
		// broken is a part of the violation, empty for none.
		broken string
	}{
		{"published, and never gone", [][]Event{live, boot, {at(8, Whole), at(1000, Whole)}}, ""},
		{"published, gone before the daemon is there", [][]Event{live, {at(6, Cut), at(6, Gone)}}, "published, and its data is gone"},
		{"published, deleted much later", [][]Event{live, boot, {at(8, Whole), at(1000, Gone)}}, "published, and its data is gone"},
		{"published, not whole", [][]Event{live, boot, {at(8, Partial)}}, "not whole"},
		{"published without data, no directory", [][]Event{{at(0, Publish), at(1, Published)}, boot,
			{at(8, Gone), at(9, Publish), at(10, Published)}}, ""},
		{"published again without data", [][]Event{live, boot, {at(8, Publish), at(9, Published, 0)}}, "published, and its data is gone"},
		{"published again with half of the data", [][]Event{live, boot, {at(8, Publish), at(9, Published, 1)}}, "1 of 2 markers"},
		{"published again, unpublished, in time", [][]Event{live, boot, {
			at(8, Publish), at(9, Published, 2), shortly(at(10, Unpublish)), shortly(at(10.5, Retained)), at(10.6, Whole),
			at(11, Gone), at(12, Ended)}}, ""},
		{"published again, unpublished, gone at once", [][]Event{live, boot, {
			at(8, Publish), at(9, Published, 2), shortly(at(10, Unpublish)), shortly(at(10.1, Retained)), at(10.2, Gone)}}, "at the earliest"},

		{"retained, in time", [][]Event{left, boot, {at(8, Whole), at(13.4, Whole), at(14, Gone), at(15, Ended)}}, ""},
		{"retained, within the tolerance", [][]Event{left, boot, {at(18, Whole), at(19, Gone), at(20, Ended)}}, ""},
		{"retained, gone early", [][]Event{left, boot, {at(13.4, Gone)}}, "at the earliest"},
		{"retained, gone early without a daemon", [][]Event{left, {at(6, Cut), at(6, Gone)}}, "at the earliest"},
		{"retained, kept too long", [][]Event{left, boot, {at(18.1, Whole)}}, "at the latest"},
		{"retained, kept for ever", [][]Event{left, boot, {at(8, Whole), at(9, Ended)}}, "for ever"},
		{"retained, nobody could delete it", [][]Event{left,
			{at(6, Cut), at(99, Whole), at(100, Ready), at(102, Whole), at(102, Gone), at(104, Ended)}}, ""},
		{"retained, the daemon was there too long", [][]Event{left, {at(6, Cut), at(100, Ready), at(103.1, Whole)}}, "at the latest"},
		{"retained, not whole", [][]Event{left, boot, {at(8, Partial)}}, "not whole"},
		{"retained, unpublished again", [][]Event{left, boot, {at(8, Unpublish), at(9, Retained), at(18.1, Whole)}}, "at the latest"},
		{"retained, unpublished again by a daemon with another lifespan", [][]Event{left, boot, {
			shortly(at(8, Unpublish)), shortly(at(8.1, Retained)), at(10, Gone)}}, "at the earliest"},
		{"retained, published again too late", [][]Event{left, boot, {at(14, Publish), at(15, Published, 0)}}, ""},
		{"retained, published again too late, promises no data",
			[][]Event{left, boot, {at(14, Publish), at(15, Published, 0), at(16, Gone)}}, ""},
		{"retained, published again in time without data", [][]Event{left, boot, {at(12, Publish), at(13, Published, 0)}}, "at the earliest"},
		{"retained, published again, stays", [][]Event{left, boot, {at(12, Publish), at(13, Published, 2), at(1000, Whole)}}, ""},
		{"retained, published again, goes at the old deadline",
			[][]Event{left, boot, {at(12, Publish), at(13, Published, 2), at(16, Gone)}}, "published, and its data is gone"},

		{"expired, does not come back", [][]Event{left, {at(14, Gone)},
			{at(15, Cut), at(15, Gone), at(16, Ready), at(17, Gone), at(18, Ended)}}, ""},
		{"expired, its end was not on the disk", [][]Event{left, {at(14, Gone)},
			{at(15, Cut), at(15, Whole), at(16, Ready), at(16.1, Whole), at(17, Gone), at(18, Ended)}}, ""},
		{"expired, comes back", [][]Event{left, {at(14, Gone)}, {at(15, Cut), at(16, Ready), at(17, Gone), at(18, Whole)}}, "came back"},
		{"expired, kept for another lifespan", [][]Event{left, {at(14, Gone)},
			{at(15, Cut), at(15, Whole), at(16, Ready), at(19.1, Whole)}}, "at the latest"},
		{"expired during the run, early", [][]Event{left, {at(13.4, Gone)}}, "at the earliest"},

		{"asked for, not there", [][]Event{{at(0, Publish)}, boot, {at(8, Gone), at(9, Publish), at(10, Published)}}, ""},
		{"asked for, there", [][]Event{{at(0, Publish)}, boot,
			{at(8, Whole), shortly(at(9, Unpublish)), shortly(at(10, Retained)), at(11, Gone), at(12, Ended)}}, ""},
		{"asked for, kept for ever", [][]Event{{at(0, Publish)}, boot,
			{shortly(at(9, Unpublish)), shortly(at(10, Retained)), at(14.1, Whole)}}, "at the latest"},
		{"asked for, comes back", [][]Event{{at(0, Publish)}, boot,
			{shortly(at(9, Unpublish)), shortly(at(10, Retained)), at(11, Gone), at(12, Whole)}}, "came back"},

		{"leaving, still published", [][]Event{live, {at(4, Unpublish)}, boot, {at(8, Whole), at(1000, Whole)}}, ""},
		{"leaving, retained by then", [][]Event{live, {at(4, Unpublish)}, boot, {at(13.5, Gone), at(15, Ended)}}, ""},
		{"leaving, gone early", [][]Event{live, {at(4, Unpublish)}, boot, {at(13.4, Gone)}}, "at the earliest"},
		{"leaving, unpublished again, either deadline", [][]Event{live, {at(4, Unpublish)}, boot, {
			shortly(at(8, Unpublish)), shortly(at(8.5, Retained)), at(9, Gone), at(10, Ended)}}, ""},
		{"leaving, unpublished again, the old deadline", [][]Event{live, {at(4, Unpublish)}, boot, {
			shortly(at(8, Unpublish)), shortly(at(8.5, Retained)), at(16, Whole), at(18.5, Gone), at(19, Ended)}}, ""},
		{"leaving, unpublished again, too late for either", [][]Event{live, {at(4, Unpublish)}, boot, {
			shortly(at(8, Unpublish)), shortly(at(8.5, Retained)), at(19.1, Whole)}}, "at the latest"},
		{"leaving, unpublished again, too early for either", [][]Event{live, {at(4, Unpublish)}, boot, {
			shortly(at(8, Unpublish)), shortly(at(8.1, Retained)), at(8.4, Gone)}}, "at the earliest"},

		{"returning, goes at its deadline", [][]Event{left, {at(5.5, Publish)}, boot, {at(14, Gone)}}, ""},
		{"returning, stays", [][]Event{left, {at(5.5, Publish)}, boot, {at(1000, Whole)}}, ""},
		{"returning, gone early", [][]Event{left, {at(5.5, Publish)}, boot, {at(13, Gone)}}, "at the earliest"},
		{"returning, empty after the old deadline", [][]Event{left, {at(14, Publish), at(15, Cut), at(15, Empty), at(16, Ready), at(17, Empty),
			at(18, Publish), at(19, Published, 0), at(20, Wrote, 1), at(21, Partial)}}, "not whole"},
		{"returning, empty before the old deadline", [][]Event{left, {at(5.5, Publish), at(6, Cut), at(6, Empty)}}, "its data is gone"},
		{"retained, empty", [][]Event{left, boot, {at(14, Empty)}}, "its data is gone"},
		{"returned, gone at the old deadline", [][]Event{left, {at(5.5, Publish), at(5.6, Published, 2)}, boot, {at(14, Gone)}},
			"published, and its data is gone"},
		// It was seen after the old deadline, so it is published and stays so.
		{"returning, seen late, goes then", [][]Event{left, {at(5.5, Publish)}, boot, {at(18.1, Whole), at(19, Gone)}},
			"published, and its data is gone"},

		{"forgotten, retained", [][]Event{{at(0, Publish)}, boot, {shortly(forgotten(8, 14)), at(9, Whole), at(15, Gone), at(16, Ended)}}, ""},
		{"forgotten, kept for ever", [][]Event{{at(0, Publish)}, boot, {shortly(forgotten(8, 14)), at(18.1, Whole)}}, "at the latest"},
		{"forgotten with data, gone at once", [][]Event{live, {at(4, Unpublish)}, boot,
			{shortly(forgotten(8, 14)), at(8.1, Gone)}}, "at the earliest"},

		{"a failure", [][]Event{live, {at(4, Failed)}}, "an answer"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			events := slices.Concat(test.events...)
			for i := range events {
				events[i].Text = "an answer"
			}
			wantBroken(t, New(testTolerance), events, test.broken)
		})
	}
}

// forgotten is the end of a pod's directory, noticed by another time at the latest.
func forgotten(second, noticed float64) Event {
	e := at(second, Forget)
	e.Until = at(noticed, Forget).At
	return e
}

// hindered is a time in which the daemon cannot delete, and after which it needs five seconds to.
func hindered(from, to float64) Event {
	e := at(from, Hindered)
	e.Until, e.Lifespan = at(to, Hindered).At, 5*time.Second
	return e
}

// TestHindered: what hinders the daemon puts the end of what it may keep until second 18 off, unless that was over.
func TestHindered(t *testing.T) {
	t.Parallel()
	still := hindered(17, 0)
	still.Until = time.Time{}
	for _, test := range []struct {
		name     string
		hindered []Event
		now      float64
		late     bool
	}{
		{"in time", []Event{hindered(50, 51)}, 17.9, false},
		{"nothing puts it off", []Event{hindered(50, 51)}, 18.1, true},
		{"before", []Event{hindered(6, 7)}, 18.1, true},
		{"until shortly before", []Event{hindered(6, 16)}, 18.1, false},
		{"until shortly before, and time enough since", []Event{hindered(6, 16)}, 21.1, true},
		{"beyond", []Event{hindered(17, 30)}, 34.9, false},
		{"beyond, and time enough since", []Event{hindered(17, 30)}, 35.1, true},
		{"too late", []Event{hindered(19, 30)}, 20, true},
		{"still", []Event{still}, 1000, false},
		{"twice", []Event{hindered(17, 30), hindered(34, 40)}, 44.9, false},
		{"twice, the second time too late", []Event{hindered(17, 30), hindered(36, 40)}, 36, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s, broken := New(testTolerance), ""
			for _, e := range slices.Concat([]Event{at(0, Publish), at(1, Published), at(2, Wrote, 1), at(4, Unpublish), at(5, Retained)},
				test.hindered) {
				s.Add(e)
			}
			if now := at(test.now, Whole).At; now.After(s.Limit(now)) != test.late {
				t.Errorf("the limit is %s", Clock(s.Limit(now)))
			}
			if test.late {
				broken = "at the latest"
			}
			wantBroken(t, s, []Event{at(test.now, Whole)}, broken)
			if s.Broken() == "" {
				wantBroken(t, s, []Event{at(test.now, Gone)}, "") // it may go all the while
			}
		})
	}
}

// TestTold: of many looks only the first and the last are told.
func TestTold(t *testing.T) {
	t.Parallel()
	s := New(testTolerance)
	for i, what := range []Verb{Publish, Published, Cut, Whole, Whole, Whole, Whole, Gone, Gone, Gone, Ended} {
		s.Add(at(float64(i), what))
	}
	var told []string
	for _, e := range s.Told() {
		told = append(told, string(e.What))
	}
	if got, want := strings.Join(told, " "), "publish published cut whole whole gone gone end"; got != want {
		t.Errorf("told %q, want %q", got, want)
	}
}
