package pools

import (
	"strings"
	"testing"
)

const gib = 1 << 30

func TestAllocatorsChooseAmongPoolsWithRoom(t *testing.T) {
	a := Candidate{Name: "a", Total: 100 * gib, Available: 40 * gib, Provisioned: 60 * gib, Volumes: 6}
	b := Candidate{Name: "b", Total: 100 * gib, Available: 60 * gib, Provisioned: 300 * gib, Volumes: 9}
	c := Candidate{Name: "c", Total: 1000 * gib, Available: 55 * gib, Provisioned: 10 * gib, Volumes: 2}
	with := func(c Candidate, change func(*Candidate)) Candidate { change(&c); return c }
	for _, tc := range []struct {
		name       string
		rule       Rule
		candidates []Candidate
		size       int64
		want       string
	}{
		{"the least used", Weighted, []Candidate{a, b, c}, gib, "c"},
		{"many volumes count as used", Weighted, []Candidate{a, with(c, func(c *Candidate) { c.Volumes = 1200 })}, gib, "a"},
		{"what is reserved counts as used", Weighted, []Candidate{a, with(a, func(c *Candidate) { c.Name, c.Reserved = "A", gib })}, gib, "a"},
		{"no rule is Weighted", "", []Candidate{b, a}, gib, "a"},
		{"the most free", MostAvailable, []Candidate{a, b, c}, gib, "b"},
		{"what is reserved is not free", MostAvailable, []Candidate{with(b, func(c *Candidate) { c.Reserved = 30 * gib }), a}, gib, "a"},
		{"the fewest volumes", Even, []Candidate{a, b, c}, gib, "c"},
		{"the first by name", Linear, []Candidate{c, b, a}, gib, "a"},
		{"the next one when the first is full", Linear, []Candidate{c, b, a}, 50 * gib, "b"},
		{"equal ones by name", Even, []Candidate{with(a, func(c *Candidate) { c.Name = "z" }), a}, gib, "a"},
		{"exactly the room", Linear, []Candidate{a}, 40 * gib, "a"},
		{"more than the room", Linear, []Candidate{a}, 40*gib + 1, ""},
		{"refuses", Linear, []Candidate{with(a, func(c *Candidate) { c.Refuses = "Unreachable" }), b}, gib, "b"},
		{"within overcommit", Linear, []Candidate{with(a, func(c *Candidate) { c.Overcommit = 1 })}, 40 * gib, "a"},
		{"beyond overcommit", Linear, []Candidate{with(a, func(c *Candidate) { c.Overcommit = 0.9 }), b}, 40 * gib, "b"},
		{"below the headroom", Linear, []Candidate{with(a, func(c *Candidate) { c.Headroom = 10 * gib })}, 30 * gib, "a"},
		{"into the headroom", Linear, []Candidate{with(a, func(c *Candidate) { c.Headroom = 10*gib + 1 })}, 30 * gib, ""},
		{"the headroom is not promised", Linear, []Candidate{with(a, func(c *Candidate) { c.Headroom, c.Overcommit = gib, 1 })}, 40 * gib, ""},
		{"none", Weighted, nil, gib, ""},
	} {
		if got, why := Allocate(tc.rule, tc.candidates, tc.size); got != tc.want {
			t.Errorf("%s: pool %q (%s), want %q", tc.name, got, why, tc.want)
		}
	}
}

func TestAllocateSaysWhyForEachPool(t *testing.T) {
	_, why := Allocate(Even, []Candidate{
		{Name: "down", Refuses: "Unreachable: invalid credentials"},
		{Name: "full", Total: 100 * gib, Available: 12 * gib, Reserved: 5 * gib},
		{Name: "promised", Total: 100 * gib, Available: 90 * gib, Provisioned: 195 * gib, Overcommit: 2},
	}, 10*gib)
	for _, want := range []string{
		"pool down: Unreachable: invalid credentials",
		"pool full: 12 GiB free, of which 5 GiB are reserved for volumes that are being made; 10 GiB are needed",
		"pool promised: 90 GiB free, 195 GiB promised of at most 200 GiB; 10 GiB are needed",
	} {
		if !strings.Contains(why, want) {
			t.Errorf("why none takes it: %s; want %s", why, want)
		}
	}
}

func TestTwoVolumesDoNotTakeTheSameRoom(t *testing.T) {
	pool := Candidate{Name: "a", Total: 100 * gib, Available: 10 * gib}
	if got, _ := Allocate(Linear, []Candidate{pool}, 6*gib); got != "a" {
		t.Fatal("the first volume has no room")
	}
	pool.Reserved += 6 * gib
	if got, _ := Allocate(Linear, []Candidate{pool}, 6*gib); got != "" {
		t.Error("the second one takes the same room")
	}
}
