package volume

import (
	"strings"
	"testing"
)

// TestReasonInWords: what people read begins with the word that metrics, logs and the API have.
func TestReasonInWords(t *testing.T) {
	for r := Expired; r <= ForOwner; r++ {
		text := ReasonInWords(r.String())
		if !strings.HasPrefix(text, r.String()) || r.Early() != (strings.Contains(text, ": ") && r < Interrupted) {
			t.Errorf("%s in words is %q", r, text)
		}
	}
	if got := ReasonInWords("of a later version"); got != "of a later version" {
		t.Error(got)
	}
}

// TestParsePerOwner: what a flag may say.
func TestParsePerOwner(t *testing.T) {
	for text, want := range map[string]PerOwner{"": {}, "0,0": {}, "1,5": {1, 5}, "0,1": {0, 1}, "1000,1000": {1000, 1000}} {
		if got, err := ParsePerOwner(text); err != nil || got != want {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"5": "is not FIRST,LAST", "1,": "is not FIRST,LAST", ",1": "is not FIRST,LAST", "1,2,3": "is not FIRST,LAST",
		"one,2": "is not FIRST,LAST",
		"1,0":   "the newest pod", "-1,1": "first is -1", "1,1001": "last is 1001", strings.Repeat("9", 200): "is not FIRST,LAST",
	} {
		if got, err := ParsePerOwner(text); err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 200 || got != (PerOwner{}) {
			t.Errorf("%q: %v, %v, want %s", text, got, err, want)
		}
	}
}
