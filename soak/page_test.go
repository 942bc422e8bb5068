package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"html"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"
)

// pageOf writes the page and checks what has to be so in every page: it is well
// formed, and nothing is fetched from anywhere.
func pageOf(t *testing.T, x outcome) string {
	t.Helper()
	var text bytes.Buffer
	if err := writePage(x, &text); err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(bytes.NewReader(text.Bytes()))
	d.Entity = xml.HTMLEntity
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the page is not well formed: %v", err)
		}
		element, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		if name := element.Name.Local; name == "script" || name == "link" || name == "img" {
			t.Errorf("the page has an element %s", name)
		}
	}
	without := regexp.MustCompile(`xmlns(:\w+)?="[^"]*"`).ReplaceAllString(text.String(), "")
	if found := regexp.MustCompile(`https?://\S*`).FindString(without); found != "" {
		t.Errorf("the page refers to %s", found)
	}
	return text.String()
}

func TestPageHasTheTables(t *testing.T) {
	x := sampleOutcome()
	text := html.UnescapeString(pageOf(t, x))
	for _, cells := range append(callRows(x.stats), callHead) {
		for _, cell := range cells {
			if !strings.Contains(text, ">"+cell+"<") {
				t.Errorf("the page lacks the cell %q", cell)
			}
		}
	}
	for _, group := range summaryLines(x.stats, x.findings, x.took) {
		for _, l := range group {
			if !strings.Contains(text, "<td>"+l.Name+"</td><td>"+l.Value+"</td>") {
				t.Errorf("the page lacks the line %q with %q", l.Name, l.Value)
			}
		}
	}
}

func TestPageSaysHowItEnded(t *testing.T) {
	broken := sampleOutcome()
	empty := outcome{options: testOptions(), stats: newStats(), findings: &findings{}}
	interrupted := empty
	interrupted.err = errInterrupted
	for name, test := range map[string]struct {
		x     outcome
		want  []string
		never []string
	}{
		"broken": {
			broken,
			[]string{
				`<header class="violated">`, "<h1>1 violation</h1>", "a marker was lost: 1", "seed 1<", again(broken.options),
				"&lt;b&gt;not there&lt;/b&gt;", "csi-1", "uid-1", "NodePublishVolume  1ms", "/kept/here", errInterrupted.Error(), "A dashed line",
			},
			nil,
		},
		"clean":       {empty, []string{`<header class="clean">`, "0 violations</h1>", again(empty.options)}, []string{"What happened", "A dashed line"}},
		"interrupted": {interrupted, []string{`<header class="unproven">`, errInterrupted.Error()}, []string{"What happened", "0 violations</h1>"}},
	} {
		text := pageOf(t, test.x)
		for _, want := range test.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: the page lacks %q", name, want)
			}
		}
		for _, never := range test.never {
			if strings.Contains(text, never) {
				t.Errorf("%s: the page has %q", name, never)
			}
		}
	}
}

func TestPageDrawsEachCurve(t *testing.T) {
	x := sampleOutcome()
	text := pageOf(t, x)
	list := curves(x.stats, x.took.Seconds())
	if got := strings.Count(text, "<svg"); got != len(list) {
		t.Errorf("%d charts, want %d", got, len(list))
	}
	for _, c := range list {
		if !strings.Contains(html.UnescapeString(text), "<b>"+c.title+"</b>") {
			t.Errorf("the page lacks the chart %q", c.title)
		}
	}
}

// TestPageOfADay: a page must stay light, however long the run was.
func TestPageOfADay(t *testing.T) {
	x := sampleOutcome()
	x.took = 24 * time.Hour
	for n := range int(x.took / time.Second) {
		one := x.stats.samples[1]
		one.Seconds, one.Calls, one.Retained = float64(n), n*n%977+n, n*7919%100003
		x.stats.samples = append(x.stats.samples, one)
	}
	if got := len(pageOf(t, x)); got > 1<<20 {
		t.Errorf("the page has %d bytes, want less than a MiB", got)
	}
}
