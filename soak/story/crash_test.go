package story

import (
	"slices"
	"strings"
	"testing"
)

// with is an event with a text.
func with(e Event, text string) Event {
	e.Text = text
	return e
}

// TestCrashes has what a crash of the daemon alone must not lead to, each beside what it may.
func TestCrashes(t *testing.T) {
	t.Parallel()
	// Published with a marker at second 2; and retained at 4 until 13 at the earliest.
	live := []Event{at(0, Publish), at(1, Published), at(2, Wrote, 1)}
	left := append(slices.Clip(live), at(3, Unpublish), at(4, Retained))
	crash, boot := []Event{at(5, Killed)}, []Event{at(5, Killed), at(6, Ready)}
	attached := append(slices.Clip(left), at(4.1, Attach), at(4.2, Attached))
	looker := []Event{at(0, Looks), at(0, Wrote, 1), at(0, Publish), at(1, Published, 1)}
	for _, test := range []struct {
		name   string
		events [][]Event
		// broken is a part of the violation, empty for none.
		broken string
	}{
		{"released without an answer, kept as long as before", [][]Event{left, {released(5), at(16.9, Whole), at(17, Gone)}}, ""},
		{"released without an answer, kept for ever", [][]Event{left, {released(5), at(17.1, Whole)}}, "still there"},
		{"released while the unpublish is without an answer", [][]Event{live, {at(3, Unpublish), released(5), at(60, Whole)}}, ""},
		{"published, mounted", [][]Event{live, crash, {at(5, Shown)}}, ""},
		{"published, not mounted", [][]Event{live, crash, {at(5, Missing)}}, "not mounted"},
		{"published, not mounted after a reboot", [][]Event{live, {at(5, Rebooted), at(6, Missing), at(7, Whole)}}, ""},
		{"published, deleted after a reboot", [][]Event{live, {at(5, Rebooted), at(6, Missing), at(7, Gone)}}, "published, and its data is gone"},
		{"published again after a reboot, not mounted",
			[][]Event{live, {at(5, Rebooted), at(6, Publish), at(7, Published, 1), at(8, Missing)}}, "not mounted"},
		{"published, the pod sees something else", [][]Event{live, crash, {with(at(5, Wrong), "mode 0700")}}, "its pod sees: mode 0700"},
		{"published, asked for again, not mounted", [][]Event{live, {at(4, Publish)}, crash, {at(5, Missing)}}, "not mounted"},
		{"asked for, half mounted", [][]Event{{at(0, Publish)}, crash, {with(at(5, Wrong), "it is writable")}}, ""},
		{"asked for, half mounted after the answer",
			[][]Event{{at(0, Publish)}, crash, {at(6, Publish), at(7, Published), with(at(8, Wrong), "it is writable")}}, "its pod sees"},
		{"leaving, not mounted", [][]Event{live, {at(3, Unpublish)}, crash, {at(5, Missing)}}, ""},
		{"leaving, mounted, gone at the first deadline",
			[][]Event{live, {at(3, Unpublish)}, crash, {at(5, Shown), at(14, Gone)}}, "published, and its data is gone"},
		{"leaving, carried out late", [][]Event{live, {at(3, Unpublish), at(99, Whole), at(100, Gone)}}, ""},
		{"retained, mounted", [][]Event{left, crash, {at(5, Shown)}}, "no pod has it, and it is mounted"},

		{"refused", [][]Event{{at(0, Publish), at(1, Refused), at(2, Gone), at(2, Missing), at(2, Unknown)}}, ""},
		{"refused, left mounted", [][]Event{{at(0, Publish), at(1, Refused), at(2, Shown)}}, "it is mounted"},
		{"refused, left data", [][]Event{{at(0, Publish), at(1, Refused), at(2, Whole)}}, "it is there"},
		{"refused, left a record", [][]Event{{at(0, Publish), at(1, Refused), at(2, KnownLive)}}, "there is: record live"},
		{"refused, being deleted", [][]Event{{at(0, Publish), at(1, Refused), at(2, KnownGoing)}}, "there is: record deleting"},
		{"refused while it was retained", [][]Event{left, {at(5, Publish), at(6, Refused), at(12, Whole), at(13, Gone)}}, ""},
		{"refused while it was retained, deleted", [][]Event{left, {at(5, Publish), at(6, Refused), at(12, Gone)}}, "at the earliest"},

		{"published, recorded", [][]Event{live, crash, {at(5, KnownLive)}}, ""},
		{"published, recorded as retained", [][]Event{live, crash, {at(5, KnownKept)}}, "there is: record retained"},
		{"published, recorded as deleting", [][]Event{live, crash, {at(5, KnownGoing)}}, "there is: record deleting"},
		{"published, no record", [][]Event{live, crash, {at(5, Unknown)}}, "there is: no record"},
		{"asked for, no record", [][]Event{{at(0, Publish)}, crash, {at(5, Unknown)}}, ""},
		{"leaving, no record", [][]Event{live, {at(3, Unpublish)}, crash, {at(5, Unknown)}}, "there is: no record"},
		{"leaving, recorded as live", [][]Event{live, {at(3, Unpublish)}, crash, {at(5, KnownLive)}}, ""},
		{"retained, recorded", [][]Event{left, crash, {at(5, KnownKept)}}, ""},
		{"retained, recorded as live", [][]Event{left, crash, {at(5, KnownLive)}}, "there is: record live"},
		{"retained, no record", [][]Event{left, crash, {at(5, Unknown)}}, "there is: no record"},
		{"retained, asked for again, no record", [][]Event{left, {at(4.5, Publish)}, crash, {at(5, Unknown)}}, "there is: no record"},
		{"retained, deleting early", [][]Event{left, crash, {at(5, KnownGoing)}}, "there is: record deleting"},
		{"expired, deleting", [][]Event{left, {at(14, KnownGoing), at(14, Gone), at(15, Unknown)}}, ""},
		{"expired, gone and recorded as retained",
			[][]Event{left, {at(14, Gone), at(15, KnownKept)}}, "record retained; that may only be: deleted"},
		{"expired, back after a kill", [][]Event{left, {at(14, Gone), at(15, Killed), at(16, Whole)}}, "came back"},
		{"expired, in part", [][]Event{left, {at(14, Partial)}}, "not whole"},

		{"found, kept",
			[][]Event{{at(0, FoundKept), at(0, Wrote, 1)}, boot, {at(7, Unknown), at(8, KnownKept), at(15, Gone), at(16, Ended)}}, ""},
		{"found, deleted early", [][]Event{{at(0, FoundKept), at(0, Wrote, 1)}, boot, {at(7, Gone)}}, "at the earliest"},
		{"found, unpublished, no record", [][]Event{{at(0, FoundKept), at(0, Wrote, 1), at(1, Unpublish), at(2, Retained), at(3, Unknown)}},
			"there is: no record"},
		{"found mounted, unmounted", [][]Event{{at(0, FoundLive), at(0, Wrote, 1)}, boot, {at(7, Missing)}}, "not mounted"},
		{"found mounted, deleted", [][]Event{{at(0, FoundLive), at(0, Wrote, 1)}, boot, {at(99, Gone)}}, "published, and its data is gone"},
		{"full, evicted", [][]Event{left, {at(5, Pressed), at(6, Gone)}}, ""},
		{"full, a published one evicted", [][]Event{live, {at(5, Pressed), at(6, Gone)}}, "published, and its data is gone"},

		{"pinned, gone at its deadline",
			[][]Event{left, {hold(12, Decide, "Pinned"), hold(12.5, Decided, "Pinned"), at(14, Gone)}}, "at the earliest"},
		{"pinned, gone after that",
			[][]Event{left, {hold(12, Decide, "Pinned"), hold(12.5, Decided, "Pinned"), at(20, Whole), at(22, Gone)}}, ""},
		{"pinned, kept for longer",
			[][]Event{left, {hold(12, Decide, "Pinned"), hold(12.5, Decided, "Pinned"), at(25.1, Whole)}}, "at the latest"},
		{"pin without an answer, gone at its deadline", [][]Event{left, {hold(12, Decide, "Pinned"), at(14, Gone)}}, ""},
		{"pin taken back, gone at its deadline",
			[][]Event{left, {hold(11, Decide, "Pinned"), hold(11.5, Decided, "Pinned"), unpin(12), at(12.5, Decided), at(14, Gone)}}, ""},
		{"pinned and released", [][]Event{left, {hold(12, Decide, "Pinned"), hold(12.5, Decided, "Pinned"), released(13), at(14, Gone)}}, ""},
		{"pinned, recorded so", [][]Event{left, {hold(5, Decide, "Pinned"), hold(6, Decided, "Pinned")}, {with(at(7, KnownKept), "Pinned")}}, ""},
		{"pinned, recorded without", [][]Event{left, {hold(5, Decide, "Pinned"), hold(6, Decided, "Pinned")}, {at(7, KnownKept)}},
			"there is: record retained; that may only be: retained until 22:13:35.000, held as Pinned"},
		{"pin without an answer", [][]Event{left, {hold(5, Decide, "Pinned")}, crash, {at(7, KnownKept)}}, ""},
		{"recorded as pinned, never asked for", [][]Event{left, crash, {with(at(7, KnownKept), "Pinned")}}, "held as Pinned; that may"},
		{"released, gone after the grace", [][]Event{left, {released(5), hold(6, Decided, "Released"), at(7, Gone)}}, ""},
		{"released, gone before", [][]Event{left, {released(5), hold(5.1, Decided, "Released"), at(5.2, Gone)}}, "at the earliest"},
		{"released, kept", [][]Event{left, {released(5), hold(6, Decided, "Released"), at(10.1, Whole)}}, "at the latest"},
		{"release without an answer, kept", [][]Event{left, {released(5)}, boot, {at(10.1, Whole), at(14, Gone)}}, ""},
		{"purged, gone", [][]Event{left, {purged(5), hold(6, Decided, "Purged"), at(6, Gone)}}, ""},
		{"purged, still recorded", [][]Event{left, {purged(5), hold(6, Decided, "Purged"), at(6, KnownKept)}}, "record retained"},
		{"purged, kept", [][]Event{left, {purged(5), hold(6, Decided, "Purged"), at(9.1, Whole)}}, "at the latest"},

		{"attached, kept", [][]Event{attached, boot, {at(99, Whole)}}, ""},
		{"attached, deleted at its deadline", [][]Event{attached, boot, {at(14, Gone)}}, "a pod has it attached"},
		{"attached and released, deleted",
			[][]Event{attached, {released(5), hold(6, Decided, "Released"), at(9, Gone)}}, "a pod has it attached"},
		{"attached, being deleted", [][]Event{attached, boot, {at(14, KnownGoing)}}, "there is: record deleting"},
		{"detached, gone at its deadline", [][]Event{attached, {shortly(at(5, Detach)), at(6, Detached), at(13, Gone)}}, ""},
		{"detached, gone before", [][]Event{attached, {shortly(at(5, Detach)), at(6, Detached), at(12, Gone)}}, "at the earliest"},
		{"detached late, gone without a grace",
			[][]Event{attached, {shortly(at(20, Detach)), at(20.1, Detached), at(20.2, Gone)}}, "at the earliest"},
		{"detached late, kept", [][]Event{attached, {shortly(at(20, Detach)), at(21, Detached), at(25.1, Whole)}}, "at the latest"},
		{"detached without an answer, carried out late",
			[][]Event{attached, {shortly(at(20, Detach)), at(30, Whole), at(31, Gone)}}, ""},
		{"gone, then attached", [][]Event{left, {at(14, Gone), at(15, Attach), at(16, Attached), at(17, Gone)}}, "a pod has it attached"},
		{"looking, with data of its own", [][]Event{looker, {at(2, Whole)}}, "data of its own"},
		{"looking, not mounted", [][]Event{looker, crash, {at(5, Missing)}}, "not mounted"},
		{"looked, over", [][]Event{looker, {at(2, Unpublish), at(3, Retained), at(3, Missing), at(3, Gone), at(3, Unknown), at(4, Ended)}}, ""},
		{"looked, recorded", [][]Event{looker, {at(2, Unpublish), at(3, Retained), at(3, KnownKept)}}, "there is: record retained"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			wantBroken(t, New(testTolerance), slices.Concat(test.events...), test.broken)
		})
	}
}

// TestInPlace: without room for the rename, half of the data may be there, once it may go.
func TestInPlace(t *testing.T) {
	t.Parallel()
	left := []Event{at(0, Publish), at(1, Published), at(2, Wrote, 1), at(3, Unpublish), at(4, Retained)}
	for _, test := range []struct {
		name   string
		sights []Event
		broken string
	}{
		{"half deleted", []Event{at(13, Partial), at(13, KnownGoing), at(14, Gone), at(15, Ended)}, ""},
		{"half deleted early", []Event{at(12, Partial)}, "not whole"},
		{"half deleted, recorded as retained", []Event{at(13, Partial), at(13, KnownKept)}, "record retained"},
		{"half deleted, for ever", []Event{at(13, Partial), at(14, Ended)}, "for ever"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := New(testTolerance)
			s.InPlace = true
			wantBroken(t, s, slices.Concat(left, test.sights), test.broken)
		})
	}
}

// wantBroken tells a story and compares what breaks it.
func wantBroken(t *testing.T, s *Story, events []Event, broken string) {
	t.Helper()
	for _, e := range events {
		s.Add(e)
	}
	if broken == "" && s.Broken() != "" || !strings.Contains(s.Broken(), broken) {
		t.Errorf("violation %q, want one with %q", s.Broken(), broken)
	}
}

func hold(second float64, what Verb, as string) Event { return with(at(second, what), as) }

// released is a release with a grace of a second, purged one with none.
func released(second float64) Event { return shortly(hold(second, LetGo, "Released")) }

func unpin(second float64) Event {
	e := at(second, Decide)
	e.Lifespan = 0
	return e
}

func purged(second float64) Event {
	e := hold(second, LetGo, "Purged")
	e.Lifespan = 0
	return e
}
