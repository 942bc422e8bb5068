package main

import (
	"testing"
	"time"
)

func TestTombstones(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	a, b := &follower{}, &follower{}
	volumes := map[string]*follower{"a": a, "b": b}
	for name, tt := range map[string]struct {
		list           []buried
		missing, twice *follower
	}{
		"one each":            {list: []buried{{"a", at}, {"b", at}}},
		"another volume's":    {list: []buried{{"a", at}, {"b", at}, {"c", at}, {"c", at}}},
		"two lives":           {list: []buried{{"a", at}, {"a", at.Add(time.Second)}, {"b", at}}},
		"none of one":         {list: []buried{{"a", at}}, missing: b},
		"two of one life":     {list: []buried{{"a", at}, {"b", at}, {"b", at.Add(5 * time.Millisecond)}}, twice: b},
		"two, one in another": {list: []buried{{"a", at}, {"a", at.Add(time.Hour)}, {"a", at}, {"b", at}}, twice: a},
	} {
		missing, twice := compare(volumes, tt.list)
		if is(missing) != tt.missing || is(twice) != tt.twice {
			t.Errorf("%s: %d missing, %d twice", name, len(missing), len(twice))
		}
	}
}

// is the one volume of a list.
func is(list []*follower) *follower {
	if len(list) == 0 {
		return nil
	}
	return list[0]
}
