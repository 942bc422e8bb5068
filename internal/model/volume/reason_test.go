package volume

import (
	"strings"
	"testing"
)

// TestReasonInWords: what people read begins with the word that metrics, logs and the API have.
func TestReasonInWords(t *testing.T) {
	for r := Expired; r <= Interrupted; r++ {
		text := ReasonInWords(r.String())
		if !strings.HasPrefix(text, r.String()) || r.Early() != (strings.Contains(text, ": ") && r != Interrupted) {
			t.Errorf("%s in words is %q", r, text)
		}
	}
	if got := ReasonInWords("of a later version"); got != "of a later version" {
		t.Error(got)
	}
}
