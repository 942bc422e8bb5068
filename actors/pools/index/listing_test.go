package index

import (
	"fmt"
	"maps"
	"testing"

	poolmessages "github.com/katbox/katbox/messages/pools"
)

// TestUnclaimedPages: all volumes are asked for, in several turns.
func TestUnclaimedPages(t *testing.T) {
	x := New()
	for i := range 2*sweepPage + 1 {
		name := fmt.Sprintf("v%05d", i)
		x.volumes[name] = &Volume{Flags: poolmessages.FlagReady, Claim: "uid-" + name}
	}
	found, pages := map[string]string{}, 0
	for last := ""; pages == 0 || last != ""; pages++ {
		page := x.ClaimedPage(last)
		maps.Copy(found, page.ByClaim)
		last = page.Last
	}
	if len(found) != 2*sweepPage+1 || pages != 3 {
		t.Errorf("%d volumes in %d pages", len(found), pages)
	}
}
