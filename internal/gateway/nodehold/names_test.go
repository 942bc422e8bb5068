package nodehold

import (
	"os"
	"strings"
	"testing"
)

// TestNamesAreDocumented: what stands on a Node is on the page that says why.
func TestNamesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../deploy/docs/archive.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(Holding(), Marker) {
		if !strings.Contains(string(page), "`"+name) {
			t.Errorf("deploy/docs/archive.md does not name %s", name)
		}
	}
}
