package main

import (
	"bytes"
	"cmp"
	"fmt"
	"html/template"
	"image/color"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The size of a chart in its own units; the page scales it.
const (
	chartWidth  = 440 * vg.Length(1)
	chartHeight = 150 * vg.Length(1)
	// mostPoints is how many points a line may have: more than there are pixels
	// only make the page heavy.
	mostPoints = 1200
)

// chart is what is drawn over the time of a run.
type chart struct {
	title string
	lines []series
	// whole: only whole numbers make sense, so there are no ticks between them.
	whole bool
	// log: the vertical axis is logarithmic, and values of 0 are left out.
	log bool
	// width is the run's length in seconds.
	width float64
	kills []mark
}

// series is one line of a chart.
type series struct {
	name   string
	color  color.RGBA
	points plotter.XYs
}

var (
	blue   = color.RGBA{R: 0x1f, G: 0x6f, B: 0xb5, A: 0xff}
	orange = color.RGBA{R: 0xe0, G: 0x7b, B: 0x1f, A: 0xff}
	red    = color.RGBA{R: 0xc6, G: 0x28, B: 0x28, A: 0xff}
	pink   = color.RGBA{R: 0xf7, G: 0xc6, B: 0xc6, A: 0xff}
	rose   = color.RGBA{R: 0xd9, G: 0x6c, B: 0x6c, A: 0xff}
	pale   = color.RGBA{R: 0xe6, G: 0xe8, B: 0xea, A: 0xff}
	grey   = color.RGBA{R: 0x5f, G: 0x66, B: 0x6d, A: 0xff}
)

// svg draws the chart as an element of a page.
func (c chart) svg() (template.HTML, error) {
	p := plot.New()
	p.X.Min, p.X.Max = 0, max(c.width, 0.1)
	p.X.Tick.Marker = plot.TickerFunc(timeTicks)
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Color, axis.Tick.Color = pale, pale
		axis.Tick.Label.Color = grey
		axis.Tick.Label.Font.Variant = "Sans"
		axis.Tick.Label.Font.Size = font.Length(9)
		axis.Padding = 0
	}
	grid := plotter.NewGrid()
	grid.Vertical.Width, grid.Horizontal.Color = 0, pale
	p.Add(outages(c.kills), grid)
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
		line.LineStyle = draw.LineStyle{Color: s.color, Width: vg.Points(1.2)}
		p.Add(line)
	}
	c.scale(p)
	canvas := vgsvg.New(chartWidth, chartHeight)
	// The label of the last tick reaches beyond the axis.
	p.Draw(draw.Crop(draw.New(canvas), 0, -14, 0, 0))
	var text bytes.Buffer
	if _, err := canvas.WriteTo(&text); err != nil {
		return "", fmt.Errorf("chart %q: %w", c.title, err)
	}
	// What is before the element is for a file of its own.
	_, element, _ := strings.Cut(text.String(), "<svg")
	return template.HTML("<svg" + element), nil
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
	p.Y.Min, p.Y.Max = min(p.Y.Min, 0), max(p.Y.Max, 0)
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

// outages draws the times in which the daemon was away, from top to bottom.
type outages []mark

func (o outages) Plot(c draw.Canvas, p *plot.Plot) {
	x, _ := p.Transforms(&c)
	for _, m := range o {
		from, to := x(m.Killed), c.Max.X
		if m.Ready != nil {
			to = x(*m.Ready)
		}
		c.FillPolygon(pink, []vg.Point{{X: from, Y: c.Min.Y}, {X: to, Y: c.Min.Y}, {X: to, Y: c.Max.Y}, {X: from, Y: c.Max.Y}})
		// A restart is often too short to be seen.
		c.StrokeLine2(draw.LineStyle{Color: rose, Width: vg.Points(0.6), Dashes: []vg.Length{3, 2}}, from, c.Min.Y, from, c.Max.Y)
	}
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

// roundTicks divides a range at about four round numbers that are no closer than
// the given distance.
func roundTicks(low, high, least float64) []plot.Tick {
	step := math.Pow(10, math.Floor(math.Log10((high-low)/4)))
	for _, factor := range []float64{1, 2, 5, 10} {
		if (high-low)/(step*factor) <= 5 {
			step *= factor
			break
		}
	}
	step = max(step, least)
	unit, suffix := 1.0, ""
	if max(high, -low) >= 1e6 {
		unit, suffix = 1e6, "M"
	}
	var ticks []plot.Tick
	for n := math.Ceil(low / step); n*step <= high; n++ {
		label := "0"
		if n != 0 {
			// More digits would be those of rounding.
			label = strconv.FormatFloat(n*step/unit, 'g', 6, 64) + suffix
		}
		ticks = append(ticks, plot.Tick{Value: n * step, Label: label})
	}
	return ticks
}

// decadeTicks divides a logarithmic range at the powers of ten.
func decadeTicks(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	for v := low; v <= high*1.001; v *= 10 {
		ticks = append(ticks, plot.Tick{Value: v, Label: strconv.FormatFloat(v, 'g', 6, 64)})
	}
	return ticks
}

// timeTicks divides seconds at about eight round times.
func timeTicks(low, high float64) []plot.Tick {
	steps := []float64{0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400}
	step := steps[len(steps)-1]
	for _, s := range steps {
		if (high-low)/s <= 9 {
			step = s
			break
		}
	}
	var ticks []plot.Tick
	for n := math.Ceil(low / step); n*step <= high; n++ {
		label := strconv.FormatFloat(n*step, 'g', 4, 64) + "s"
		if n*step >= 60 {
			label = time.Duration(n * step * float64(time.Second)).Round(time.Second).String()
		}
		for _, zero := range []string{"m0s", "h0m"} {
			if strings.HasSuffix(label, zero) {
				label = strings.TrimSuffix(label, zero[1:])
			}
		}
		ticks = append(ticks, plot.Tick{Value: n * step, Label: label})
	}
	return ticks
}
