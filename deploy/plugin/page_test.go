package main

import (
	"bytes"
	"image/png"
	"os"
	"strings"
	"testing"
)

// TestPage: the page for users shows the transcript and the pictures that "make e2e SUITE=transcript" has made in a real
// cluster.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../docs/users.md")
	if err != nil {
		t.Fatal(err)
	}
	transcript, err := os.ReadFile("transcript.txt")
	if err != nil {
		t.Fatal(err)
	}
	if part := "\n<!-- plugin -->\n```\n" + string(transcript) + "```\n<!-- /plugin -->\n"; !strings.Contains(string(page), part) {
		t.Errorf("deploy/docs/users.md has another transcript than deploy/plugin/transcript.txt; make e2e SUITE=transcript writes both. "+
			"It should have:%s", part)
	}
	for _, name := range []string{"page-list.png", "page-file.png"} {
		if !strings.Contains(string(page), "](../plugin/"+name+")") {
			t.Errorf("deploy/docs/users.md does not show deploy/plugin/%s", name)
		}
		picture, err := os.ReadFile(name)
		if err != nil {
			t.Error(err)
			continue
		}
		size, err := png.DecodeConfig(bytes.NewReader(picture))
		if err != nil || size.Width < 1000 || len(picture) > 200<<10 {
			t.Errorf("%s has %d bytes, and a width of %d: %v", name, len(picture), size.Width, err)
		}
	}
}
