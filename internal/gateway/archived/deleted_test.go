package archived

import (
	"fmt"
	"testing"

	"github.com/katbox/katbox/internal/gateway/fleet"
	"github.com/katbox/katbox/internal/model/api"
)

// TestDeletedNamespaces: once it is known what deleted namespaces were called, a list of one name does not look through the others.
func TestDeletedNamespaces(t *testing.T) {
	s := newStage(t)
	for i, name := range []string{"old", "old", "other", "both"} {
		v := shown(fmt.Sprintf("dddddddd-0000-4000-8000-%012d", i), i)
		v.Namespace = name
		s.put(v)
		if name == "both" { // a forged one hides nothing
			v = shown(v.Owner.NamespaceUID, i+100)
			v.Namespace = "forged"
			s.put(v)
		}
	}
	must(t, s.look(t.Context()))
	for round, want := range []int{4, 3} {
		parts := s.With(fleet.Where{Name: "old"})
		if len(parts) != want {
			t.Errorf("round %d: %d namespaces", round, len(parts))
		}
		for _, part := range parts {
			_, err := part.List(t.Context(), fleet.Reader{}, api.Query{Namespace: "old"})
			must(t, err)
		}
	}
	if all := s.With(fleet.Where{All: true}); len(all) != 4 {
		t.Errorf("%d of all", len(all))
	}
}
