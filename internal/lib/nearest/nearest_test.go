package nearest

import (
	"strings"
	"testing"
)

func TestOf(t *testing.T) {
	known := []string{"lifespan", "sizeLimit", "protocol"}
	for word, want := range map[string]string{
		"Lifespan": "lifespan", "lifespam": "lifespan", "SIZELIMIT": "sizeLimit", "protocols": "protocol",
		"": "", "other": "", "x": "", strings.Repeat("lifespan", 100): "",
		// Of eight letters and less two may be wrong, of nine and more a third.
		"lifesxxn": "lifespan", "lifexxxn": "", "sizeLxxxt": "sizeLimit", "sizexxxxt": "",
		// From four letters on the beginning of a word is enough.
		"size": "sizeLimit", "siz": "",
	} {
		if got := Of(word, known); got != want {
			t.Errorf("nearest to %.20q: %q, want %q", word, got, want)
		}
	}
}

func TestOfSeveral(t *testing.T) {
	for name, test := range map[string]struct {
		word  string
		known []string
		want  string
	}{
		"the nearest":          {"lifespam", []string{"lifestam", "lifespan"}, "lifestam"},
		"the nearest, later":   {"lifespam", []string{"lifexpan", "lifespan"}, "lifespan"},
		"the first of two":     {"modx", []string{"mode", "moda"}, "mode"},
		"another case":         {"Lifespan", []string{"lifespanSucceeded", "lifespan"}, "lifespan"},
		"nearer than 2 slips":  {"prot", []string{"plat", "protocol"}, "protocol"},
		"a beginning":          {"prot", []string{"prog", "protocol"}, "prog"},
		"no beginning of mine": {"protocols", []string{"prot"}, ""},
		"none":                 {"mode", nil, ""},
	} {
		if got := Of(test.word, test.known); got != test.want {
			t.Errorf("%s: nearest to %q: %q, want %q", name, test.word, got, test.want)
		}
	}
}

// TestLongest: what is too long to be a slip of the pen is not compared.
func TestLongest(t *testing.T) {
	word := strings.Repeat("l", longest)
	if got := Of(word, []string{word}); got != word {
		t.Errorf("nearest to %d letters: %q", len(word), got)
	}
	word += "l"
	if got := Of(word, []string{word}); got != "" {
		t.Errorf("nearest to %d letters: %q", len(word), got)
	}
}

func TestDistance(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"abc", "axc", 1}, {"abcd", "acd", 1}, {"acd", "abcd", 1},
		{"ab", "ba", 2}, {"flaw", "lawn", 2}, {"kitten", "sitting", 3}, {"abcdef", "azced", 3},
	} {
		if got := distance(test.a, test.b); got != test.want {
			t.Errorf("from %q to %q: %d, want %d", test.a, test.b, got, test.want)
		}
	}
}
