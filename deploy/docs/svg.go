package main

import (
	"fmt"
	"html"
	"strings"
)

// The colours of the picture.
const (
	ink   = "#24292f"
	grey  = "#6e7781"
	green = "#2da44e"
	blue  = "#0969da"
	red   = "#cf222e"
)

// drawing is an SVG picture on a white ground, which is readable on a dark page too.
type drawing struct{ strings.Builder }

func newDrawing(width, height int, title string) *drawing {
	d := &drawing{}
	fmt.Fprintf(d, `<svg xmlns="http://www.w3.org/2000/svg" width="%[1]d" height="%[2]d" viewBox="0 0 %[1]d %[2]d" `+
		`font-family="sans-serif" font-size="14" role="img">`+"\n<title>%[3]s</title>\n"+
		`<rect width="%[1]d" height="%[2]d" fill="#ffffff"/>`+"\n", width, height, html.EscapeString(title))
	return d
}

// text writes a line of text; anchor is start, middle or end.
func (d *drawing) text(x, y int, anchor, colour, text string) {
	fmt.Fprintf(d, `<text x="%d" y="%d" text-anchor="%s" fill="%s">%s</text>`+"\n", x, y, anchor, colour, html.EscapeString(text))
}

func (d *drawing) line(x1, y1, x2, y2 int, colour string) {
	fmt.Fprintf(d, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="%s"/>`+"\n", x1, y1, x2, y2, colour)
}

func (d *drawing) end() string { return d.String() + "</svg>\n" }
