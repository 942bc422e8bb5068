package pool

import (
	"testing"

	poolmessages "github.com/katbox/katbox/messages/pools"
)

// TestAFewAttachmentsAreAskedAboutAtOnce, and all in turn.
func TestAFewAttachmentsAreAskedAboutAtOnce(t *testing.T) {
	all := []poolmessages.Content{{Name: "nas"}}
	for i := range 150 {
		all = append(all, poolmessages.Content{Name: "raw-" + string(rune('a'+i/26)) + string(rune('a'+i%26)), Flags: poolmessages.FlagISCSI})
	}
	asked, x := map[string]int{}, &comparison{}
	for range 3 {
		now := x.asked(all)
		if len(now) != asksAtOnce {
			t.Errorf("asked about %d", len(now))
		}
		for name := range now {
			asked[name]++
		}
	}
	if len(asked) != 150 || asked["nas"] != 0 {
		t.Errorf("asked about %d", len(asked))
	}
	if now := x.asked(all[:2]); len(now) != 1 {
		t.Errorf("asked about %v", now)
	}
}
