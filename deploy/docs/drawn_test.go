package main

import (
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/katbox/katbox/internal/model/volume"
)

// drawn are the pictures that a person has drawn, and words that each shows. They are those of the code and of the chart.
var drawn = map[string][]string{
	"deploy/docs/afterlife.svg": {
		volume.Published.String(), volume.Retained.String(), volume.Succeeded.String(), volume.Stopped.String(), volume.Failed.String(),
		"12 hours", "30 days",
	},
	"deploy/docs/who.svg": {"kubelet", "daemon: katbox", "gateway (optional)", "API server", "kubectl katbox", "bucket (optional)"},
}

// TestDrawnPictures are small, have a title and a description for those who do not see them, follow the colours of the page,
// and have each line of text inside.
func TestDrawnPictures(t *testing.T) {
	for path, words := range drawn {
		content := read(t, path)
		if len(content) > 8<<10 || !strings.Contains(content, "prefers-color-scheme:dark") ||
			!strings.Contains(content, `role="img" aria-labelledby="t d"`) {
			t.Errorf("%s has %d bytes, or no colours of its own in the dark, or no role", path, len(content))
		}
		width, texts := textsOf(t, path, content)
		for _, text := range texts {
			// A letter is about 7.6 wide in the widest of the fonts that browsers take for system-ui, in 14 pixels.
			long := 7.6 * float64(len(text.says))
			begins := map[string]float64{"": text.x, "middle": text.x - long/2}[text.anchor]
			if begins < 0 || begins+long > width {
				t.Errorf("%s: %q may leave the picture: from %.0f to %.0f of %.0f", path, text.says, begins, begins+long, width)
			}
		}
		for _, word := range words {
			if !slices.ContainsFunc(texts, func(text drawnText) bool { return strings.Contains(text.says, word) }) {
				t.Errorf("%s does not show %q", path, word)
			}
		}
		for _, element := range []string{"title", "desc"} {
			if _, rest, found := strings.Cut(content, "<"+element+" id="); !found || strings.HasPrefix(rest, "</") {
				t.Errorf("%s has no %s", path, element)
			}
		}
	}
	if !volume.Published.CanBecome(volume.Unpublishing) || !volume.Unpublishing.CanBecome(volume.Retained) ||
		!volume.Retained.CanBecome(volume.Deleting) {
		t.Error("the life of a volume is another one than in deploy/docs/afterlife.svg")
	}
}

type drawnText struct {
	x            float64
	anchor, says string
}

// textsOf returns the width of a picture and its texts.
func textsOf(t *testing.T, path, content string) (width float64, texts []drawnText) {
	t.Helper()
	decoder := xml.NewDecoder(strings.NewReader(content))
	in := false
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return width, texts
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			in = token.Name.Local == "text"
			if in {
				texts = append(texts, drawnText{})
			}
			for _, a := range token.Attr {
				number, _ := strconv.ParseFloat(a.Value, 64)
				switch {
				case token.Name.Local == "svg" && a.Name.Local == "width":
					width = number
				case in && a.Name.Local == "x":
					texts[len(texts)-1].x = number
				case in && a.Name.Local == "text-anchor":
					texts[len(texts)-1].anchor = a.Value
				}
			}
		case xml.CharData:
			if in {
				texts[len(texts)-1].says += string(token)
			}
		case xml.EndElement:
			in = false
		}
	}
}
