package main

import (
	"regexp"
	"strings"
	"testing"
)

// instead has what a reader whose first language is not English reads twice, and what to write.
var instead = map[string]string{
	"in the place of":      "instead of",
	"mend":                 "correct, or repair",
	"mended":               "corrected, or repaired",
	"nobody":               "no user, no pod: the noun",
	"somebody":             "a person, a program: the noun",
	"whoever":              "the noun",
	"told to go":           "stopped",
	"of what was promised": "of its lifespan",
	"but for":              "except",
	"likewise":             "also",
	"no other one":         "no other, and the noun",
}

// TestPlainWords: no document has such a phrase, its code aside.
func TestPlainWords(t *testing.T) {
	for _, page := range documents(t) {
		text := codeSpan.ReplaceAllString(codeBlock.ReplaceAllString(read(t, page), ""), "")
		text = strings.ToLower(strings.Join(strings.Fields(text), " "))
		for phrase, better := range instead {
			if at := regexp.MustCompile(`\b` + phrase + `\b`).FindStringIndex(text); at != nil {
				t.Errorf("%s has %q, in %q: write %s", page, phrase, text[max(0, at[0]-40):at[1]], better)
			}
		}
	}
}
