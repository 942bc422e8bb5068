package main

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// page is what the page says. Whoever opens it must see in a moment whether the
// run was clean.
type page struct {
	Verdict  verdict
	Headline string
	Unproven string
	Seed     uint64
	Command  string
	Facts    string
	Kept     string
	// Broken are the promises that were broken.
	Broken  []line
	Stories []pageStory
	More    int
	Charts  []figure
	Killed  bool
	// The tables are those of the terminal.
	CallHead []string
	Calls    [][]string
	Summary  [][]line
}

type pageStory struct {
	Promise promise
	At      string
	What    string
	Volume  string
	Pod     string
	Calls   string
	More    int
}

type figure struct {
	Title  string
	Legend []legend
	SVG    template.HTML
}

type legend struct {
	Name  string
	Color template.CSS
}

// writePage writes the result for people: one page that needs nothing beside it.
func writePage(x outcome, w io.Writer) error {
	p, err := newPage(x)
	if err != nil {
		return err
	}
	if err := pageTemplate.Execute(w, p); err != nil {
		return fmt.Errorf("as a page: %w", err)
	}
	return nil
}

func newPage(x outcome) (page, error) {
	s, f := x.stats, x.findings
	p := page{
		Verdict:  x.verdict(),
		Headline: headline(x),
		Seed:     x.options.seed,
		Command:  "soak " + again(x.options),
		Facts: fmt.Sprintf("%d of %d pods, %d volumes, %d calls, %d kills in %s, begun at %s", s.pods, x.options.pods, s.volumes,
			s.sums().calls, s.kills, x.took.Round(100*time.Millisecond), s.began.Format("2006-01-02 15:04:05 MST")),
		Kept:     x.kept,
		Killed:   len(s.marks) > 0,
		CallHead: callHead,
		Calls:    callRows(s),
		Summary:  summaryLines(s, f, x.took),
	}
	if x.err != nil {
		p.Unproven = x.err.Error()
	}
	for _, name := range promises {
		if n := f.number(name); n > 0 {
			p.Broken = append(p.Broken, line{Name: string(name), Value: fmt.Sprint(n), Bad: true})
		}
	}
	told := stories(f.all())
	for _, v := range told[:min(mostStories, len(told))] {
		p.Stories = append(p.Stories, pageStory{
			Promise: v.promise, At: v.at.Format(clock), What: v.what, Volume: v.volume, Pod: v.pod,
			Calls: strings.Join(v.calls, "\n"), More: v.times - 1,
		})
	}
	p.More = len(told) - len(p.Stories)
	for _, c := range curves(s, x.took.Seconds()) {
		drawn, err := c.svg()
		if err != nil {
			return p, err
		}
		fig := figure{Title: c.title, SVG: drawn}
		for _, l := range c.lines {
			if len(c.lines) == 1 {
				break // the title says it
			}
			fig.Legend = append(fig.Legend, legend{
				Name:  l.name,
				Color: template.CSS(fmt.Sprintf("#%02x%02x%02x", l.color.R, l.color.G, l.color.B)),
			})
		}
		p.Charts = append(p.Charts, fig)
	}
	return p, nil
}

// headline is the verdict in a few words.
func headline(x outcome) string {
	switch n := x.findings.sum(); {
	case n == 1:
		return "1 violation"
	case n > 1:
		return fmt.Sprintf("%d violations", n)
	case x.err != nil:
		return "Nothing is proven"
	default:
		return "Clean: 0 violations"
	}
}
