package report

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"regexp"
	"slices"
	"time"

	"github.com/katbox/katbox/soak/internal/workload"
	"github.com/katbox/katbox/soak/story"
)

// pageFiles are the parts of the page: plain HTML, CSS and ES modules, which nothing builds.
//
//go:embed page/page.html page/*.css page/*.js
var pageFiles embed.FS

// scripts are the modules of the page, each after those that it imports. They become one, so no two
// of them declare the same name.
var scripts = []string{"scale.js", "strips.js", "chart.js", "main.js"}

var imports = regexp.MustCompile(`(?m)^import .*$`)

// pageData is what the page draws. All judgements and sums are made here; the page decides only
// what a drawing looks like.
type pageData struct {
	Headline string `json:"headline"`
	Facts    string `json:"facts"`
	// Stories are those that are told, and More is how many there are beside them.
	Stories []pageStory `json:"stories"`
	More    int         `json:"more"`
	// CallHead, Calls and Groups are the tables of the terminal.
	CallHead []string   `json:"call_head"`
	Calls    [][]string `json:"calls"`
	Groups   []group    `json:"groups"`
	// AtOnce are the kinds of faults in the run that have no length.
	AtOnce []workload.FaultKind `json:"at_once"`
	// Run is the result, without the violations: Stories has them.
	Run Result `json:"run"`
}

type pageStory struct {
	violation
	Clock string `json:"clock"`
	// Again says how often the same happened again; empty if it did not.
	Again string `json:"again"`
}

// Page writes the result for people: one page that needs nothing beside it. A text of the run stays
// text: it is in a block of data, in which no character can end it, and the page makes no HTML of it.
func (x *Result) Page(w io.Writer) error {
	run, err := json.Marshal(newPageData(x)) // "<", ">" and "&" are escaped in there
	if err != nil {
		return fmt.Errorf("as a page: %w", err)
	}
	style, err := pageFiles.ReadFile("page/style.css")
	if err != nil {
		return fmt.Errorf("as a page: %w", err)
	}
	var script bytes.Buffer
	for _, name := range scripts {
		text, err := pageFiles.ReadFile("page/" + name)
		if err != nil {
			return fmt.Errorf("as a page: %w", err)
		}
		script.Write(imports.ReplaceAll(text, nil))
	}
	t, err := template.ParseFS(pageFiles, "page/page.html")
	if err != nil {
		return fmt.Errorf("as a page: %w", err)
	}
	if err := t.Execute(w, struct {
		Headline, Policy string
		Verdict          Verdict
		Seed             uint64
		Style            template.CSS
		Script, Run      template.JS
	}{
		x.headline(), fmt.Sprintf("default-src 'none'; base-uri 'none'; form-action 'none'; style-src %s; script-src %s",
			hashOf(style), hashOf(script.Bytes())),
		x.Verdict, x.Seed, template.CSS(style), template.JS(script.String()), template.JS(run),
	}); err != nil {
		return fmt.Errorf("as a page: %w", err)
	}
	return nil
}

// hashOf is how a Content-Security-Policy names an inline script or style.
func hashOf(text []byte) string {
	sum := sha256.Sum256(text)
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

func newPageData(x *Result) pageData {
	p := pageData{
		Headline: x.headline(), Facts: x.facts(), Stories: []pageStory{}, CallHead: callHead, Calls: x.callRows(), Groups: x.groups(),
		AtOnce: []workload.FaultKind{}, Run: *x,
	}
	if p.Calls == nil {
		p.Calls = [][]string{}
	}
	p.Run.Violations = []violation{}
	told, more := x.stories()
	for _, s := range told {
		p.Stories = append(p.Stories, pageStory{s.violation, story.Clock(s.At), s.again()})
	}
	p.More = more
	for _, f := range x.FaultSpans {
		if !f.Kind.Lasting() && !slices.Contains(p.AtOnce, f.Kind) {
			p.AtOnce = append(p.AtOnce, f.Kind)
		}
	}
	return p
}

// facts say in a sentence what the run was.
func (x *Result) facts() string {
	name := x.Workload.Name
	if name == "" {
		name = "without a name"
	}
	return fmt.Sprintf("Katbox soak with seed %d: workload %s, %d of %d pods, %d volumes, %d calls in %s, begun at %s.",
		x.Seed, name, x.Summary.Pods, x.Workload.Pods, x.Summary.Volumes, x.Summary.Calls, long(x.Seconds), x.Began.Format(time.RFC3339))
}
