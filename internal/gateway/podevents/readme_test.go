package podevents

import (
	"os"
	"strings"
	"testing"
)

// TestReadmeShowsTheEvent as it is written.
func TestReadmeShowsTheEvent(t *testing.T) {
	readme, err := os.ReadFile("../../../README.md")
	if want := reason + "  12s  " + component + "  " + message("ml", "train-7", []string{"scratch"}) + "\n"; err != nil ||
		!strings.Contains(string(readme), want) {
		t.Errorf("README.md does not have the event %q: %v", want, err)
	}
}
