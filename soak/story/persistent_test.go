package story

import (
	"slices"
	"testing"
)

// TestPersistent: a persistent volume is there from its create until its delete. A call without an answer was carried
// out or was not, and what is seen then stays so.
func TestPersistent(t *testing.T) {
	t.Parallel()
	made := []Event{at(0, Create, 10), at(1, Created, 10)}
	used := append(slices.Clip(made), at(2, Wrote, 1))
	kept := append(slices.Clip(used), hold(3, Decide, "kept"), hold(4, Decided, "kept"))
	for _, test := range []struct {
		name   string
		events [][]Event
		// broken is a part of the violation, empty for none.
		broken string
	}{
		{"made", [][]Event{made, {at(9, Listed, 10), at(99, Listed, 10)}}, ""},
		{"made, and gone", [][]Event{made, {at(9, Unknown)}}, "there is: no record; that may only be: volume"},
		{"made with another size", [][]Event{{at(0, Create, 10), at(1, Created, 11)}}, "between 10 and 10"},
		{"asked for, and there", [][]Event{made[:1], {at(9, Listed, 10)}}, ""},
		{"asked for, and not there", [][]Event{made[:1], {at(9, Unknown)}}, ""},
		{"asked for, seen, and gone", [][]Event{made[:1], {at(8, Listed, 10), at(9, Unknown)}}, "no record"},
		{"asked for, not there, and there after all", [][]Event{made[:1], {at(8, Unknown), at(9, Listed, 10)}}, "may only be: nothing"},
		{"refused, and there", [][]Event{made[:1], {at(1, Refused), at(9, Listed, 10)}}, "may only be: nothing"},
		{"never asked for", [][]Event{{at(9, Listed, 10)}}, "may only be: nothing"},

		{"used, whole", [][]Event{used, {at(9, Killed), at(10, Whole), at(11, Cut), at(999, Whole)}}, ""},
		{"used, not whole", [][]Event{used, {with(at(9, Partial), "marker 1 is not there")}}, "not whole: marker 1"},
		{"used, its data is gone", [][]Event{used, {at(9, Gone)}}, "was not deleted, and its data is gone"},
		{"on a full disk, gone", [][]Event{used, {at(9, Pressed), at(10, Gone)}}, "was not deleted"},

		{"growing, and not grown", [][]Event{made, {at(2, Grow, 20), at(9, Listed, 10)}}, ""},
		{"growing, and grown", [][]Event{made, {at(2, Grow, 20), at(9, Listed, 20)}}, ""},
		{"growing, and grown later", [][]Event{made, {at(2, Grow, 20), at(8, Listed, 10), at(9, Listed, 20)}}, ""},
		{"growing, grown, and as before", [][]Event{made, {at(2, Grow, 20), at(8, Listed, 20), at(9, Listed, 10)}}, "between 20 and 20"},
		{"growing, and too large", [][]Event{made, {at(2, Grow, 20), at(9, Listed, 21)}}, "between 10 and 20"},
		{"grown, and not grown", [][]Event{made, {at(2, Grow, 20), at(3, Grown, 20), at(9, Listed, 10)}}, "between 20 and 20"},
		{"grown by more than asked for", [][]Event{made, {at(2, Grow, 20), at(3, Grown, 30)}}, "between 20 and 20"},
		{"grown by less than asked for", [][]Event{made, {at(2, Grow, 20), at(3, Grown, 15)}}, "between 20 and 20"},
		{"not asked to grow", [][]Event{made, {at(9, Listed, 20)}}, "between 10 and 10"},
		{"no room to grow, and grown", [][]Event{made, {at(2, Grow, 20), at(3, Refused), at(9, Listed, 20)}}, "between 10 and 10"},
		{"no room to grow, and gone", [][]Event{made, {at(2, Grow, 20), at(3, Refused), at(9, Unknown)}}, "no record"},

		{"about to be retained", [][]Event{used, {hold(3, Decide, "kept"), at(9, Listed, 10)}}, ""},
		{"retained without an answer", [][]Event{used, {hold(3, Decide, "kept"), with(at(9, Listed, 10), "kept")}}, ""},
		{"retained without an answer, seen, and restored",
			[][]Event{used, {hold(3, Decide, "kept"), with(at(8, Listed, 10), "kept"), at(9, Listed, 10)}}, "may only be: volume, held as kept"},
		{"retained, and forgotten", [][]Event{kept, {at(9, Listed, 10)}}, "may only be: volume, held as kept"},
		{"retained, whole after any time", [][]Event{kept, {at(9999, Whole), with(at(9999, Listed, 10), "kept")}}, ""},
		{"retained, and gone by itself", [][]Event{kept, {at(9999, Unknown)}}, "no record"},
		{"restored, and retained",
			[][]Event{kept, {at(5, Decide), at(6, Decided), with(at(9, Listed, 10), "kept")}},
			"there is: volume, held as kept; that may only be: volume"},

		{"being deleted, and there", [][]Event{used, {at(3, Delete), at(9, Listed, 10), at(10, Whole)}}, ""},
		{"being deleted, and gone", [][]Event{used, {at(3, Delete), at(9, Unknown), at(9, Gone)}}, ""},
		{"being deleted, seen, and gone later", [][]Event{used, {at(3, Delete), at(8, Listed, 10), at(9, Unknown)}}, "no record"},
		{"being deleted, gone, and back", [][]Event{used, {at(3, Delete), at(8, Unknown), at(9, Listed, 10)}}, "may only be: nothing"},
		{"being deleted, in part", [][]Event{used, {at(3, Delete), at(9, Partial)}}, "not whole"},
		{"deleted, and back", [][]Event{used, {at(3, Delete), at(4, Deleted), at(9, Listed, 10)}}, "may only be: nothing"},
		{"deleted, and its data is back", [][]Event{used, {at(3, Delete), at(4, Deleted), at(9, Whole)}}, "came back"},
		{"deleted, and gone", [][]Event{used, {at(3, Delete), at(4, Deleted), at(9, Unknown), at(9, Gone)}}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			wantBroken(t, New(testTolerance), slices.Concat(test.events...), test.broken)
		})
	}
}
