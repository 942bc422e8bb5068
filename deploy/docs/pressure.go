package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/katbox/katbox/internal/model/duration"
	"github.com/katbox/katbox/internal/model/lifespan"
	"github.com/katbox/katbox/internal/model/volume"
)

const (
	// The daemon's defaults of --headroom and --afterlifespan; a test compares them.
	headroom     = 0.1
	longLifespan = 12 * time.Hour
	// The picture goes to so many thousandths of free space, in such steps.
	most, step = 400, 10
	// Where the chart is in the picture.
	left, right, top, bottom = 90, 860, 40, 240
)

// pressurePicture draws how long a volume is kept by how much of the disk is free, for a disk of its own and for one
// that Katbox shares with the kubelet. It asks the daemon's own arithmetic.
func pressurePicture() string {
	d := newDrawing(900, 310, "How long files are kept, by the free space of the disk")
	d.text(left, 22, "start", ink, "files are kept for")
	for share := 0.0; share <= 1; share += 0.5 {
		y := height(share)
		d.line(left, y, right, y, "#d0d7de")
		d.text(left-8, y+5, "end", ink, duration.Format(time.Duration(share*float64(longLifespan))))
	}
	for free := 0; free <= most; free += 50 {
		d.line(column(free), bottom, column(free), bottom+5, ink)
		d.text(column(free), bottom+22, "middle", ink, fmt.Sprintf("%d %%", free/10))
	}
	d.text(right, bottom+46, "end", ink, "free space of the disk")
	own, shared := lifespan.Limits{Headroom: headroom}, lifespan.Limits{Headroom: headroom, Line: lifespan.DefaultLine}
	d.curve(own, green)
	d.curve(shared, blue)
	d.text(left, bottom+46, "start", green, "Katbox has a disk of its own")
	d.text(left+220, bottom+46, "start", blue, "it shares the disk with the kubelet")
	line := int(math.Round(float64(shared.Pressure(disk(most), volume.Size{}).Line.Bytes) / 1000))
	d.line(column(line), top, column(line), bottom, red)
	d.text(column(line)+6, top-8, "start", red, "with less free the kubelet evicts pods")
	return d.end()
}

// curve draws one of the lines.
func (d *drawing) curve(limits lifespan.Limits, colour string) {
	points := make([]string, 0, most/step+1)
	for free := 0; free <= most; free += step {
		factor := limits.Pressure(disk(free), volume.Size{}).Factor
		points = append(points, fmt.Sprintf("%d,%d", column(free), height(factor)))
	}
	fmt.Fprintf(d, `<polyline points="%s" fill="none" stroke="%s" stroke-width="3"/>`+"\n", strings.Join(points, " "), colour)
}

// disk is one of which so many thousandths are free. Inodes have no limit.
func disk(free int) volume.Space {
	return volume.Space{Total: volume.Size{Bytes: 1_000_000}, Free: volume.Size{Bytes: int64(free) * 1000}}
}

func column(free int) int { return left + free*(right-left)/most }

func height(factor float64) int { return bottom - int(factor*(bottom-top)) }
