package main

import (
	"os"
	"strings"
	"testing"

	"github.com/katbox/katbox/internal/model/volume"
)

// TestPageSaysReasonsAsPluginDoes: the page and kubectl katbox list --gone say in the same words why a volume is gone.
func TestPageSaysReasonsAsPluginDoes(t *testing.T) {
	facts, err := os.ReadFile("../../internal/plugin/web/page/facts.js")
	if err != nil {
		t.Fatal(err)
	}
	for r := volume.Expired; r <= volume.ForOwner; r++ {
		word, meaning, more := strings.Cut(volume.ReasonInWords(r.String()), ": ")
		if want := word + `: "` + meaning + `"`; more && !strings.Contains(string(facts), want) {
			t.Errorf("facts.js lacks %s", want)
		}
	}
}
