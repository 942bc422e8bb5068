package api

import "testing"

// TestAway: the archive and the pools on arrays are no nodes.
func TestAway(t *testing.T) {
	for _, c := range []struct {
		missing   []string
		more, all int
		who       string
		one       bool
	}{
		{[]string{"n1"}, 0, 3, "1 of 3 nodes", true},
		{[]string{"n1", "n2"}, 3, 9, "5 of 9 nodes", false},
		{[]string{TheArchive}, 0, 3, "the archive", true},
		{[]string{TheArchive, "n1"}, 0, 3, "1 of 3 nodes and the archive", false},
		{[]string{TheArrays}, 0, 0, "pools on arrays", false},
	} {
		if who, one := Away(c.missing, c.more, c.all); who != c.who || one != c.one {
			t.Errorf("%v and %d of %d: %q, %t", c.missing, c.more, c.all, who, one)
		}
	}
}
