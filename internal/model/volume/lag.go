package volume

import "slices"

// transition is a change of a volume's phase. A change that leaves the phase is one, too.
type transition struct{ from, to Phase }

// lagging are the changes that may be answered before they are on the disk, each with what must hold for the
// record before and the one after. All others wait: a publish of what was retained, whatever attaches or decides,
// and every step of a deletion.
//
// The process may die right after the answer: then the change is in the journal. A power cut may take it, and all
// changes of the volume since the one that waited last. So a change may lag only if each older record, found by
// the start after a power cut, lets data go no earlier than the newer one. That start finds nothing mounted.
// A volume that is recorded as in use waits for its kubelet, or for the end of its pod; one whose unmount was
// ordered at all its targets is retained from then on; a directory without a record is retained once its
// pod is gone, for the lifespan that the administrator has set.
var lagging = map[transition]func(before, after *Record) bool{
	{Unknown, Publishing}: keepsItsOwn,
	{Unknown, Retained}:   keepsItsOwn, // it was found, and would be again

	{Publishing, Unpublishing}:   always,
	{Published, Unpublishing}:    always,
	{Unpublishing, Unpublishing}: always,
	{Publishing, Published}:      keepsOrders,
	{Published, Published}:       keepsOrders,

	{Publishing, Retained}:   retainsFromNow,
	{Published, Retained}:    retainsFromNow,
	{Unpublishing, Retained}: retainsFromNow,
	{Retained, Retained}:     keepsNoLonger,

	// A publish that was undone, or the end of a volume without data of its own: what it had attached
	// stays as long as the record is there.
	{Publishing, Unknown}:   waitsForItsKubelet,
	{Published, Unknown}:    attaches,
	{Unpublishing, Unknown}: attaches,
}

// MayLag reports whether a change may be answered before it is on the disk: once the kernel has it. before is what
// was recorded last, after what is to be recorded; each is nil where nothing is known.
//
// No change may that takes a volume's project away: before the ID is another volume's, no record may have it.
// None may that takes an outcome back, which may make a lifespan longer. And none of a volume about which a person has
// decided something: the record is the only place that says so.
func MayLag(before, after *Record) bool {
	may := lagging[transition{PhaseOf(before), PhaseOf(after)}]
	return may != nil && isUndecided(before) && isUndecided(after) && isSame(before, after) && may(before, after)
}

func isUndecided(r *Record) bool { return r == nil || r.Hold == Hold{} }

// isSame: what the volume stands on, and what it was promised, stay as they are.
func isSame(before, after *Record) bool {
	switch {
	case before == nil:
		return true
	case after == nil:
		return before.Project == 0
	}
	return after.Project == before.Project && after.Terms == before.Terms && after.Attach == before.Attach &&
		(before.Outcome == OutcomeUnknown || after.Outcome == before.Outcome)
}

func always(_, _ *Record) bool { return true }

// keepsItsOwn: the data are the volume's own. If the record of a volume that attaches another were lost, the other one
// would go at its deadline.
func keepsItsOwn(_, after *Record) bool { return after.Attach == Place{} }

// keepsOrders: what it is still mounted at was recorded, and all other targets that were are still to be unmounted. A
// start that finds all of them ordered to be unmounted lets the volume be retained, though its pod still has it.
func keepsOrders(before, after *Record) bool {
	for _, t := range after.Targets {
		if known, _ := before.Target(t.Path); !t.Leaving && (known.Path == "" || known.Leaving) {
			return false
		}
	}
	for _, t := range before.Targets {
		if now, _ := after.Target(t.Path); t.Leaving && !now.Leaving {
			return false
		}
	}
	return true
}

// retainsFromNow: the pod had the volume until now, and it is kept for no longer than its terms say. A volume that gets
// back what it was before a publish may have a later deadline than that.
func retainsFromNow(before, after *Record) bool {
	return !after.Unpublished.Before(before.Published) && (after.Terms == Terms{} || after.Lifespan <= after.Terms.Lifespan)
}

// keepsNoLonger: neither its deadline nor its place among those that go early gets better.
func keepsNoLonger(before, after *Record) bool {
	return after.Unpublished.Equal(before.Unpublished) && after.Lifespan <= before.Lifespan
}

// waitsForItsKubelet: the volume may be published anew at once, and a start that finds the record keeps it for that.
func waitsForItsKubelet(before, _ *Record) bool {
	return !slices.ContainsFunc(before.Targets, func(t Target) bool { return t.Leaving })
}

func attaches(before, _ *Record) bool { return before.Attach != Place{} }
