package lifespan

import (
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// TestTheFloorRises with what may be written before deletions make room, but never above what is
// wanted, and guaranteed volumes do not go for that.
func TestTheFloorRises(t *testing.T) {
	for name, tt := range map[string]struct {
		line          Line
		free, soon    int64
		factor        float64
		floor         int64
		lacking, less int64
	}{
		"nobody writes":             {free: 75, floor: 50, factor: 0.5},
		"a slow pod":                {free: 75, soon: 40, floor: 50, factor: 0.5},
		"a pod in a hurry":          {free: 75, soon: 80, floor: 80, lacking: 80 + 2 + 1 - 75 - 1},
		"faster than the headroom":  {free: 75, soon: 5000, floor: 100, lacking: 101 - 75},
		"above the headroom":        {free: 100, soon: 5000, floor: 100, factor: 1},
		"all but full":              {free: 25, soon: 80, floor: 80, lacking: 82 - 25, less: 1},
		"the kubelet looks too":     {line: DefaultLine, free: 220, floor: 170, factor: 0.5},
		"and a pod is in a hurry":   {line: DefaultLine, free: 220, soon: 90, floor: 240, lacking: 243 - 220},
		"faster than what is free":  {line: DefaultLine, free: 220, soon: 5000, floor: 270, lacking: 271 - 220},
		"the line is far above all": {line: Line{Bytes: Amount{count: 5000}}, free: 900, soon: 10, floor: 1000},
	} {
		t.Run(name, func(t *testing.T) {
			p := Limits{Headroom: 0.1, Line: tt.line}.Pressure(spaceOf(room{1000, tt.free}, room{}), volume.Size{Bytes: tt.soon})
			if p.Factor != tt.factor || p.Floor.Bytes != tt.floor || p.Lacking.Bytes != tt.lacking || p.Short.Bytes != tt.less {
				t.Errorf("%+v, want factor %v, floor %d, %d lacking, of which %d at the brink", p, tt.factor, tt.floor, tt.lacking, tt.less)
			}
		})
	}
}

// TestFilling: how fast a disk fills is known after a look, and forgotten in some seconds.
func TestFilling(t *testing.T) {
	type look struct {
		after time.Duration
		free  int64
	}
	for name, tt := range map[string]struct {
		looks []look
		want  int64
	}{
		"one look":                   {[]look{{0, 1000}}, 0},
		"nothing is written":         {[]look{{0, 1000}, {time.Second, 1000}}, 0},
		"100 in a second":            {[]look{{0, 1000}, {time.Second, 900}}, 100},
		"looks that follow closely":  {[]look{{0, 1000}, {50 * time.Millisecond, 980}, {50 * time.Millisecond, 960}}, 40},
		"the fastest counts":         {[]look{{0, 1000}, {time.Second, 900}, {time.Second, 890}}, 75},
		"and is forgotten":           {[]look{{0, 1000}, {time.Second, 900}, {10 * time.Second, 900}}, 3},
		"at last":                    {[]look{{0, 1000}, {time.Second, 900}, {time.Hour, 900}}, 0},
		"what comes free is no loss": {[]look{{0, 500}, {time.Second, 900}}, 0},
		"and hides none":             {[]look{{0, 500}, {50 * time.Millisecond, 900}, {50 * time.Millisecond, 850}}, 50},
	} {
		t.Run(name, func(t *testing.T) {
			var f Filling
			at := epoch
			for _, l := range tt.looks {
				at = at.Add(l.after)
				f.Saw(at, volume.Size{Bytes: l.free, Inodes: l.free})
			}
			if got := f.Speed(); got != (volume.Size{Bytes: tt.want, Inodes: tt.want}) {
				t.Errorf("%v in a second, want %d", got, tt.want)
			}
		})
	}
}

// TestNextLook: a disk is looked at before the fastest writer reaches the next mark.
func TestNextLook(t *testing.T) {
	const total, gib, longest = 100 << 30, 1 << 30, 10 * time.Second
	fast := Burst{Fastest: volume.Size{Bytes: 2 * gib, Inodes: 1000}}
	for name, tt := range map[string]struct {
		free, inodes, speed int64
		headroom            float64
		burst               Burst
		want                time.Duration
	}{
		"most is free":                 {free: 60 * gib, headroom: 0.1, burst: fast, want: longest},
		"less":                         {free: 16 * gib, headroom: 0.1, burst: fast, want: 3 * time.Second},
		"just enough":                  {free: 10 * gib, headroom: 0.1, burst: fast, want: shortestLook},
		"less than is wanted":          {free: 6 * gib, headroom: 0.1, burst: fast, want: 500 * time.Millisecond},
		"at the floor":                 {free: 5 * gib, headroom: 0.1, burst: fast, want: longestUnderPressure},
		"next to nothing":              {free: gib / 10, headroom: 0.1, burst: fast, want: shortestLook},
		"nothing":                      {headroom: 0.1, burst: fast, want: longestUnderPressure},
		"it fills":                     {free: 16 * gib, speed: gib, headroom: 0.1, burst: fast, want: 1500 * time.Millisecond},
		"it fills faster":              {free: 16 * gib, speed: 6 * gib, headroom: 0.1, burst: fast, want: 500 * time.Millisecond},
		"it fills, and is full soon":   {free: 5*gib + 1, speed: gib, headroom: 0.1, burst: fast, want: closestLook},
		"few inodes":                   {free: 60 * gib, inodes: 12_000, headroom: 0.1, burst: fast, want: 2 * time.Second},
		"nothing is expected":          {free: 10 * gib, speed: gib, headroom: 0.1, want: longest},
		"nothing, under pressure":      {free: 5 * gib, speed: gib, headroom: 0.1, want: longestUnderPressure},
		"nothing has to stay free":     {free: 1, speed: gib, burst: fast, want: longest},
		"the whole disk is to be so":   {free: total, headroom: 1, burst: fast, want: shortestLook},
		"a disk without a limit of it": {free: 60 * gib, inodes: -1, headroom: 0.1, burst: fast, want: longest},
	} {
		t.Run(name, func(t *testing.T) {
			is := spaceOf(room{total, tt.free}, room{100_000, 100_000})
			switch {
			case tt.inodes > 0:
				is.Free.Inodes = tt.inodes
			case tt.inodes < 0:
				is.Total.Inodes, is.Free.Inodes = 0, 0
			}
			got := Limits{Headroom: tt.headroom, Burst: tt.burst}.NextLook(is, volume.Size{Bytes: tt.speed}, longest)
			if got.Round(time.Millisecond) != tt.want {
				t.Errorf("looks after %v, want %v", got, tt.want)
			}
		})
	}
}

// TestSoon: what is written until a deletion has made room.
func TestSoon(t *testing.T) {
	b := Burst{Reaction: 2 * time.Second}
	if got := b.Soon(volume.Size{Bytes: 10, Inodes: 3}); got != (volume.Size{Bytes: 20, Inodes: 6}) {
		t.Errorf("%v", got)
	}
	if got := b.Soon(volume.Size{Bytes: 1 << 62}); got.Bytes < 1<<61 {
		t.Errorf("an overflow: %v", got)
	}
	if got := (Burst{}).Soon(volume.Size{Bytes: 1 << 40}); got != (volume.Size{}) {
		t.Errorf("%v, though nothing is expected", got)
	}
}
