package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/workload"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// mostListed is how many faults the page lists one by one; the charts show all.
const mostListed = 300

// page is what the page says. Whoever opens it must see in a moment whether the
// run was clean.
type page struct {
	*Result
	Headline string
	Facts    string
	// Broken are the promises that were broken.
	Broken  []line
	Stories []pageStory
	More    int
	// Kinds are those of the faults in the charts, Timeline the drawing of them.
	Kinds      []legend
	Timeline   template.HTML
	Listed     []listedFault
	MoreListed int
	Charts     []figure
	// The tables are those of the terminal.
	CallHead []string
	Calls    [][]string
	Groups   []group
	Colors   []themeColor
}

type pageStory struct {
	story
	Clock string
	Text  string
	// Again says how often the same happened again; empty if it did not.
	Again string
}

type figure struct {
	Title  string
	Note   string
	Legend []legend
	// Limit says that there is a line at the headroom.
	Limit bool
	SVG   template.HTML
}

type legend struct {
	Name  string
	Color themeColor
}

type listedFault struct {
	Kind  workload.FaultKind
	Color themeColor
	At    string
	For   string
	What  string
}

// Page writes the result for people: one page that needs nothing beside it.
func (x *Result) Page(w io.Writer) error {
	p, err := newPage(x)
	if err != nil {
		return err
	}
	if err := pageTemplate.Execute(w, p); err != nil {
		return fmt.Errorf("as a page: %w", err)
	}
	return nil
}

func newPage(x *Result) (*page, error) {
	p := &page{
		Result: x, Headline: x.headline(), Facts: x.facts(),
		CallHead: callHead, Calls: x.callRows(), Groups: x.groups(), Colors: themeColors(),
	}
	for _, l := range x.promiseGroup().Lines {
		if l.Bad {
			p.Broken = append(p.Broken, l)
		}
	}
	told, more := x.stories()
	for _, v := range told {
		p.Stories = append(p.Stories, pageStory{
			story: v, Clock: v.At.Format(history.Clock), Text: strings.Join(v.Story, "\n"), Again: v.again(),
		})
	}
	p.More = more
	if err := p.drawFaults(); err != nil {
		return nil, err
	}
	for _, c := range x.curves() {
		drawn, err := c.svg()
		if err != nil {
			return nil, err
		}
		fig := figure{Title: c.title, Note: c.note, SVG: drawn, Limit: c.limit != 0}
		for _, l := range c.lines {
			if len(c.lines) == 1 {
				break // the title says it
			}
			fig.Legend = append(fig.Legend, legend{l.name, l.themeColor})
		}
		p.Charts = append(p.Charts, fig)
	}
	return p, nil
}

// drawFaults fills in what is about the faults of the node.
func (p *page) drawFaults() error {
	if len(p.FaultSpans) == 0 {
		return nil
	}
	for _, kind := range kindsOf(p.FaultSpans) {
		p.Kinds = append(p.Kinds, legend{string(kind), colorOf(kind)})
	}
	for _, f := range p.FaultSpans[:min(mostListed, len(p.FaultSpans))] {
		p.Listed = append(p.Listed, f.listed())
	}
	p.MoreListed = len(p.FaultSpans) - len(p.Listed)
	drawn, err := drawFaults(p.FaultSpans, p.Seconds)
	p.Timeline = drawn
	return err
}

func (f faultSpan) listed() listedFault {
	l := listedFault{Kind: f.Kind, Color: colorOf(f.Kind), At: long(f.From), What: f.What}
	switch {
	case f.To != nil:
		l.For = short((*f.To - f.From) * 1e3)
	case f.Kind.Lasting():
		l.For = "until the end"
	}
	return l
}

// facts say in a sentence what the run was.
func (x *Result) facts() string {
	name := x.Workload.Name
	if name == "" {
		name = "without a name"
	}
	return fmt.Sprintf("workload %s, %d of %d pods, %d volumes, %d calls in %s, begun at %s", name, x.Summary.Pods, x.Workload.Pods,
		x.Summary.Volumes, x.Summary.Calls, long(x.Seconds), x.Began.Format(time.RFC3339))
}
