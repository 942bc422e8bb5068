package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"html"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/katbox/katbox/soak/internal/history"
)

// pageOf writes the page and checks what has to be so in every page: it is well
// formed, nothing is fetched from anywhere, and nothing runs.
func pageOf(t *testing.T, x *Result) string {
	t.Helper()
	var text bytes.Buffer
	if err := x.Page(&text); err != nil {
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
	if strings.Contains(text.String(), "ZgotmplZ") {
		t.Error("the template refused a value")
	}
	return text.String()
}

func TestPageHasTheTables(t *testing.T) {
	x := smallResult(t)
	text := html.UnescapeString(pageOf(t, x))
	for _, cells := range append(x.callRows(), callHead) {
		for _, cell := range cells {
			if !strings.Contains(text, ">"+cell+"<") {
				t.Errorf("the page lacks the cell %q", cell)
			}
		}
	}
	for _, g := range x.groups() {
		for _, l := range g.Lines {
			if !strings.Contains(text, "<td>"+l.Name+"</td><td>"+l.Value+"</td>") {
				t.Errorf("the page lacks the line %q with %q", l.Name, l.Value)
			}
		}
	}
}

func TestPageSaysHowItEnded(t *testing.T) {
	for name, test := range map[string]struct {
		x     *Result
		want  []string
		never []string
	}{
		"broken": {
			smallResult(t),
			[]string{
				`<header class="violated">`, "<h1>1 violation</h1>", "published data stays: 1", "seed 7<", "soak --seed 7 --workload small",
				"&lt;b&gt;not there&lt;/b&gt;", "csi-&lt;script&gt;", "uid-1", "NodePublishVolume", "/kept/here", "end: interrupted",
				"A dashed line", "pods: 4\n", "until the end", "by 1h0m0s", "Linux 6.1",
			},
			[]string{"<script", "<b>not"},
		},
		"clean": {
			emptyResult(nil, nil), []string{`<header class="clean">`, "0 violations</h1>", "soak --seed 0", ">kept</td>"},
			[]string{"What happened", "A dashed line", "one by one", "The workload<"},
		},
		"interrupted": {
			emptyResult(interrupted{}, nil), []string{`<header class="unproven">`, "end: interrupted", "not broken so far"},
			[]string{"What happened", "0 violations</h1>", ">kept</td>"},
		},
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

// TestPageTrustsNobody: every text may come from a volume, a driver or a file.
func TestPageTrustsNobody(t *testing.T) {
	const evil = `</pre></style><script>alert("1")</script><img src="x"/>`
	x := smallResult(t)
	x.Unproven, x.Command, x.Machine, x.Kept, x.Workload.Name, x.Workload.YAML = evil, evil, evil, evil, evil, evil
	x.Violations = append(x.Violations, violation{Promise: evil, What: evil, Volume: evil, Pod: evil, Story: []string{evil}})
	x.Methods[3].Codes[evil] = 1
	x.Promises[0].Promise = history.Promise(evil)
	x.Faults[0].Kind, x.FaultSpans[0].Kind, x.FaultSpans[0].What = evil, evil, evil
	if text := pageOf(t, x); strings.Contains(text, "<script") || strings.Contains(text, "<img") {
		t.Error("a text became an element")
	}
}

func TestPageDrawsEachCurve(t *testing.T) {
	x := smallResult(t)
	text := pageOf(t, x)
	list := x.curves()
	// And one more for the faults.
	if got := strings.Count(text, "<svg"); got != len(list)+1 {
		t.Errorf("%d charts, want %d", got, len(list)+1)
	}
	for _, c := range list {
		if !strings.Contains(html.UnescapeString(text), "<b>"+c.title+"</b>") {
			t.Errorf("the page lacks the chart %q", c.title)
		}
	}
}

// TestPageOfADay: a page must stay light, however long the run was.
func TestPageOfADay(t *testing.T) {
	x := generated(24*3600, true)
	for len(x.FaultSpans) < 3*mostListed {
		x.FaultSpans = append(x.FaultSpans, x.FaultSpans[0])
	}
	text := pageOf(t, x)
	if got := len(text); got > 3<<20/2 {
		t.Errorf("the page has %d bytes, want less than 1.5 MiB", got)
	}
	if !strings.Contains(text, "... and 600 more") {
		t.Error("the page does not say that it leaves faults out")
	}
}
