package archived

import (
	"slices"
	"testing"
	"time"
)

// TestForgetAfterAClockWasSet: the copy that a node knows of is found however far its clock was adjusted since, and one of another node
// or pod with that ID is not deleted.
func TestForgetAfterAClockWasSet(t *testing.T) {
	s := newStage(t)
	v, elsewhere, of := s.put(shown(alpha, 100)), shown(alpha, 100), shown(alpha, 100)
	elsewhere.Node, of.PodUID = "node-2", podUID
	elsewhere, of = s.put(elsewhere), s.put(of)
	onNode := v
	onNode.Archived, onNode.Phase = "", "Retained"
	at := v.RetainedAt.Add(-100 * time.Hour)
	onNode.RetainedAt = &at
	must(t, s.Forget(t.Context(), onNode))
	if keys := s.store.Keys(""); len(keys) != 3 {
		t.Errorf("one that the node did not archive: %q", keys)
	}
	onNode.ArchivedUntil = v.ExpiresAt
	must(t, s.Forget(t.Context(), onNode))
	onNode.RetainedAt = v.RetainedAt
	must(t, s.Forget(t.Context(), onNode))
	want := []string{elsewhere.Archived, of.Archived}
	slices.Sort(want)
	keys := s.store.Keys("")
	slices.Sort(keys)
	if !slices.Equal(keys, want) {
		t.Errorf("%q", keys)
	}
}
