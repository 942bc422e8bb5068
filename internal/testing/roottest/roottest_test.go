package roottest_test

import (
	"os"
	"testing"

	"github.com/katbox/katbox/internal/testing/roottest"
)

// TestMountsEnd checks that nothing stays mounted: the inner test is over, and
// its target can be removed, which a mount point cannot.
func TestMountsEnd(t *testing.T) {
	roottest.Need(t)
	source, target := t.TempDir(), t.TempDir()
	t.Run("inner", func(t *testing.T) {
		roottest.Bind(t, source, target)
		roottest.Bind(t, source, target)
		if err := os.Remove(target); err == nil {
			t.Fatal("removed a mount point")
		}
	})
	if err := os.Remove(target); err != nil {
		t.Fatalf("still mounted: %v", err)
	}
}
