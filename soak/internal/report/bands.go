package report

import (
	"fmt"
	"html/template"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/katbox/katbox/soak/internal/workload"
)

// least is the width that can just be seen.
const least = 0.5

// bands draws the faults behind the lines of a chart, from top to bottom: a
// dashed line where one begins, and a shade for as long as it lasts.
type bands struct {
	faults []faultSpan
	width  float64
}

// Plot implements [plot.Plotter]. A fault of the same kind that cannot be told
// from the one before is left out.
func (b bands) Plot(c draw.Canvas, p *plot.Plot) {
	x, _ := p.Transforms(&c)
	for _, kind := range kindsOf(b.faults) {
		// One path for all of a kind keeps the page light.
		var shades, beginnings vg.Path
		seenFrom, seenTo := vg.Length(-least), vg.Length(-least)
		for _, f := range b.faults {
			if f.Kind != kind {
				continue
			}
			from, to := x(f.From), x(f.end(b.width))
			if from-seenFrom < least && to-seenTo < least {
				continue
			}
			seenFrom, seenTo = from, to
			shades.Move(vg.Point{X: from, Y: c.Min.Y})
			shades.Line(vg.Point{X: to, Y: c.Min.Y})
			shades.Line(vg.Point{X: to, Y: c.Max.Y})
			shades.Line(vg.Point{X: from, Y: c.Max.Y})
			shades.Close()
			beginnings.Move(vg.Point{X: from, Y: c.Min.Y})
			beginnings.Line(vg.Point{X: from, Y: c.Max.Y})
		}
		c.SetColor(colorOf(kind).color())
		if kind.Lasting() {
			c.Fill(shades)
		}
		// Many a fault is too short to be seen, but for its beginning.
		c.SetLineStyle(draw.LineStyle{Width: vg.Points(0.6), Dashes: []vg.Length{3, 2}, Color: colorOf(kind).color()})
		c.Stroke(beginnings)
	}
}

// end is when the fault was over: at the end of the run if it lasted until
// then, at once if it has no length.
func (f faultSpan) end(width float64) float64 {
	switch {
	case f.To != nil:
		return *f.To
	case f.Kind.Lasting():
		return max(width, f.From)
	default:
		return f.From
	}
}

// across is a dashed line from left to right, at a value.
type across float64

// Plot implements [plot.Plotter].
func (a across) Plot(c draw.Canvas, p *plot.Plot) {
	_, y := p.Transforms(&c)
	style := draw.LineStyle{Color: grey.color(), Width: vg.Points(0.8), Dashes: []vg.Length{5, 3}}
	c.StrokeLine2(style, c.Min.X, y(float64(a)), c.Max.X, y(float64(a)))
}

// rowHeight is that of one kind in the drawing of all faults.
const rowHeight = 18 * vg.Length(1)

// drawFaults shows when there were which faults, in a row for each kind.
func drawFaults(faults []faultSpan, width float64) (template.HTML, error) {
	kinds := kindsOf(faults)
	slices.Reverse(kinds) // the first is at the bottom
	p := newPlot(width)
	p.Y.Min, p.Y.Max = -0.5, float64(len(kinds))-0.5
	var ticks plot.ConstantTicks
	for i, kind := range kinds {
		ticks = append(ticks, plot.Tick{Value: float64(i), Label: string(kind)})
	}
	p.Y.Tick.Marker, p.Y.Tick.Length = ticks, 0
	p.Add(faultRows{faults, kinds, width})
	drawn, err := drawPlot(p, 24+rowHeight*vg.Length(len(kinds)))
	if err != nil {
		return "", fmt.Errorf("the chart of the faults: %w", err)
	}
	return drawn, nil
}

// kindsOf are the kinds of the faults, by name.
func kindsOf(faults []faultSpan) []workload.FaultKind {
	var kinds []workload.FaultKind
	for _, f := range faults {
		if !slices.Contains(kinds, f.Kind) {
			kinds = append(kinds, f.Kind)
		}
	}
	slices.Sort(kinds)
	return kinds
}

// faultRows draws each fault as a bar in the row of its kind.
type faultRows struct {
	faults []faultSpan
	kinds  []workload.FaultKind
	width  float64
}

// Plot implements [plot.Plotter].
func (r faultRows) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for i := range r.kinds {
		c.StrokeLine2(draw.LineStyle{Color: rule.color(), Width: vg.Points(0.5)}, c.Min.X, y(float64(i)), c.Max.X, y(float64(i)))
	}
	for _, f := range r.faults {
		row := y(float64(slices.Index(r.kinds, f.Kind)))
		from := x(f.From)
		to := max(x(f.end(r.width)), from+4*least)
		c.StrokeLine2(draw.LineStyle{Color: colorOf(f.Kind).color(), Width: rowHeight * 0.55}, from, row, to, row)
	}
}
