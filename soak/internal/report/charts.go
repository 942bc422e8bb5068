package report

import (
	"bytes"
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The size of a chart in its own units; the page scales it. It is small, so
// that its text can be read on a phone too.
const (
	chartWidth  = 380 * vg.Length(1)
	chartHeight = 145 * vg.Length(1)
	fontSize    = 10.5
	// mostPoints is how many points a line may have: more than there are pixels
	// only make the page heavy.
	mostPoints = 1000
)

// chart is what is drawn over the time of a run.
type chart struct {
	title string
	// note is a remark beside the title; it may be empty.
	note  string
	lines []series
	// whole: only whole numbers make sense, so there are no ticks between them.
	whole bool
	// log: the vertical axis is logarithmic, and values of 0 are left out.
	log bool
	// limit is drawn as a dashed line across; none with 0.
	limit float64
	// top is the least that the vertical axis reaches up to.
	top float64
	// width is the run's length in seconds.
	width  float64
	faults []faultSpan
}

// series is one line of a chart.
type series struct {
	name       string
	themeColor themeColor
	points     plotter.XYs
}

// svg draws the chart as an element of a page.
func (c chart) svg() (template.HTML, error) {
	p := newPlot(c.width)
	grid := plotter.NewGrid()
	grid.Vertical.Width, grid.Horizontal.Color = 0, rule.color()
	p.Add(grid, bands{c.faults, c.width})
	if c.limit != 0 {
		p.Add(across(c.limit))
	}
	for _, s := range c.lines {
		points := thin(s.points, mostPoints)
		if c.log {
			points = slices.DeleteFunc(points, func(p plotter.XY) bool { return p.Y <= 0 })
		}
		if len(points) == 0 {
			continue // the library refuses a line without points
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return "", fmt.Errorf("chart %q, line %q: %w", c.title, s.name, err)
		}
		line.LineStyle = draw.LineStyle{Color: s.themeColor.color(), Width: vg.Points(1.3)}
		p.Add(line)
	}
	c.scale(p)
	drawn, err := drawPlot(p, chartHeight)
	if err != nil {
		return "", fmt.Errorf("chart %q: %w", c.title, err)
	}
	return drawn, nil
}

// newPlot is an empty plot over so many seconds.
func newPlot(width float64) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil // the page has one
	p.X.Min, p.X.Max = 0, max(width, 0.1)
	p.X.Tick.Marker = plot.TickerFunc(timeTicks)
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Color, axis.Tick.Color = rule.color(), rule.color()
		axis.Tick.Label.Color = grey.color()
		axis.Tick.Label.Font.Variant = "Sans"
		axis.Tick.Label.Font.Size = font.Length(fontSize)
		axis.Padding = 0
	}
	return p
}

// drawPlot makes an element of a page, in the page's colours.
func drawPlot(p *plot.Plot, height vg.Length) (template.HTML, error) {
	canvas := vgsvg.New(chartWidth, height)
	// The label of the last tick reaches beyond the axis.
	p.Draw(draw.Crop(draw.New(canvas), 0, -14, 0, 0))
	var text bytes.Buffer
	if _, err := canvas.WriteTo(&text); err != nil {
		return "", err
	}
	// What is before the element is for a file of its own.
	_, element, _ := strings.Cut(text.String(), "<svg")
	return template.HTML("<svg" + named.Replace(element)), nil
}

// scale sets the vertical axis up, once all lines are there.
func (c chart) scale(p *plot.Plot) {
	// Without a line the range is still infinite.
	if p.Y.Min > p.Y.Max {
		p.Y.Min, p.Y.Max = 1, 1
	}
	if c.log {
		p.Y.Scale = plot.LogScale{}
		p.Y.Min = math.Pow(10, math.Floor(math.Log10(p.Y.Min)))
		p.Y.Max = max(p.Y.Min*10, math.Pow(10, math.Ceil(math.Log10(p.Y.Max))))
		p.Y.Tick.Marker = plot.TickerFunc(decadeTicks)
		return
	}
	p.Y.Min, p.Y.Max = min(p.Y.Min, 0), max(p.Y.Max, c.limit, c.top, 0)
	if p.Y.Max-p.Y.Min < 1 && c.whole || p.Y.Max == p.Y.Min {
		p.Y.Max++
	}
	least := 0.0
	if c.whole {
		least = 1
	}
	p.Y.Tick.Marker = plot.TickerFunc(func(low, high float64) []plot.Tick { return roundTicks(low, high, least) })
	// A line at the very top would look cut off.
	p.Y.Max += (p.Y.Max - p.Y.Min) / 20
}

// thin leaves at most so many points of a line: the lowest and the highest of
// each part, so that no peak is lost.
func thin(points plotter.XYs, most int) plotter.XYs {
	if len(points) <= most {
		return points
	}
	parts := most / 2
	byY := func(a, b plotter.XY) int { return cmp.Compare(a.Y, b.Y) }
	var left plotter.XYs
	for i := range parts {
		part := points[i*len(points)/parts : (i+1)*len(points)/parts]
		low, high := slices.MinFunc(part, byY), slices.MaxFunc(part, byY)
		if low.X > high.X {
			low, high = high, low
		}
		left = append(left, low, high)
	}
	return left
}
