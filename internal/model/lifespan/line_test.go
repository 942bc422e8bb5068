package lifespan

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

var epoch = time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)

func TestParseLine(t *testing.T) {
	for text, want := range map[string]Line{
		"none":        {},
		"15%":         {Bytes: Amount{share: 0.15}},
		"15%,5%":      DefaultLine,
		"7.5%":        {Bytes: Amount{share: 0.075}},
		"20Gi":        {Bytes: Amount{count: 20 << 30}},
		"20Gi,3%":     {Bytes: Amount{count: 20 << 30}, Inodes: Amount{share: 0.03}},
		"20Gi,100k":   {Bytes: Amount{count: 20 << 30}, Inodes: Amount{count: 100_000}},
		"0":           {},
		"0%,5%":       {Inodes: Amount{share: 0.05}},
		"1e9":         {Bytes: Amount{count: 1e9}},
		"99%":         {Bytes: Amount{share: 0.99}},
		"21474836480": {Bytes: Amount{count: 20 << 30}},
	} {
		got, err := ParseLine(text)
		if err != nil || got != want {
			t.Errorf("ParseLine(%q) = %+v, %v, want %+v", text, got, err, want)
		}
		if again, err := ParseLine(got.String()); err != nil || again != got {
			t.Errorf("%q comes back from %q as %+v, %v", text, got, again, err)
		}
	}
}

func TestParseLineRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":              `bytes "": is neither`,
		"-1%":           `bytes "-1%": is outside of 0% to 100%`,
		"100%":          `bytes "100%": is outside of 0% to 100%`,
		"NaN%":          `bytes "NaN%": is outside of 0% to 100%`,
		"Inf%":          `bytes "Inf%": is outside of 0% to 100%`,
		"-1":            `bytes "-1": is negative or too large`,
		"1e30":          `bytes "1e30": is negative or too large`,
		"16Ei":          `bytes "16Ei": is negative or too large`,
		"15 %":          `bytes "15 %": is neither`,
		"%":             `bytes "%": is neither`,
		"20GB":          `bytes "20GB": is neither`,
		"15%,":          `inodes "": is neither`,
		",5%":           `bytes "": is neither`,
		"15%,5%,1%":     `inodes "5%,1%": is neither`,
		"20Gi, 3%":      `inodes " 3%": is neither`,
		"auto":          `bytes "auto": is neither`,
		"15%,none":      `inodes "none": is neither`,
		"0x10":          `bytes "0x10": is neither`,
		"\u0661\u0665%": `is neither`,
	} {
		if got, err := ParseLine(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseLine(%q) = %+v, %v, want %q", text, got, err, want)
		}
	}
}

func TestMarks(t *testing.T) {
	fifteen := Amount{share: 0.15}
	for name, tt := range map[string]struct {
		space    room
		headroom float64
		line     Amount
		want     marks
		factor   float64
		lacking  int64
	}{
		"above the band":        {room{1000, 271}, 0.1, fifteen, marks{1000, 150, 170, 170, 270}, 1, 0},
		"just wanted":           {room{1000, 270}, 0.1, fifteen, marks{1000, 150, 170, 170, 270}, 1, 0},
		"in the band":           {room{1000, 220}, 0.1, fifteen, marks{1000, 150, 170, 170, 270}, 0.5, 0},
		"in its lowest tenth":   {room{1000, 175}, 0.1, fifteen, marks{1000, 150, 170, 170, 270}, 0.05, 5},
		"at the floor":          {room{1000, 170}, 0.1, fifteen, marks{1000, 150, 170, 170, 270}, 0, 10},
		"below the line":        {room{1000, 100}, 0.1, fifteen, marks{1000, 150, 170, 170, 270}, 0, 80},
		"full":                  {room{1000, 0}, 0.1, fifteen, marks{1000, 150, 170, 170, 270}, 0, 180},
		"no headroom":           {room{1000, 0}, 0, fifteen, marks{1000, 150, 0, 0, 0}, 1, 0},
		"no line":               {room{1000, 75}, 0.1, Amount{}, marks{1000, 0, 25, 50, 100}, 0.5, 0},
		"no line, at the floor": {room{1000, 50}, 0.1, Amount{}, marks{1000, 0, 25, 50, 100}, 0, 5},
		"no limit":              {room{0, 0}, 0.1, fifteen, marks{}, 1, 0},
		"more free than total":  {room{1000, 5000}, 0.1, fifteen, marks{1000, 150, 170, 170, 270}, 1, 0},
		"line above the total":  {room{1000, 900}, 0.1, Amount{count: 5000}, marks{1000, 1000, 1000, 1000, 1000}, 0, 0},
		"line takes nearly all": {room{1000, 900}, 0.1, Amount{share: 0.99}, marks{1000, 990, 1000, 1000, 1000}, 0, 0},
		// What is above the floor is the whole band then.
		"line and headroom above the total": {room{1000, 875}, 0.9, Amount{share: 0.73}, marks{1000, 730, 750, 750, 1000}, 0.5, 0},
		"all of it free":                    {room{1000, 1000}, 0.9, Amount{share: 0.73}, marks{1000, 730, 750, 750, 1000}, 1, 0},
		"a number":                          {room{1000, 320}, 0.1, Amount{count: 250}, marks{1000, 250, 270, 270, 370}, 0.5, 0},
		"rounds up":                         {room{11, 1}, 0.1, fifteen, marks{11, 2, 3, 3, 5}, 0, 3},
	} {
		t.Run(name, func(t *testing.T) {
			m := marksOf(tt.space.Total, tt.headroom, tt.line)
			if m != tt.want || m.factor(tt.space.Free) != tt.factor || m.lacking(tt.space.Free) != tt.lacking {
				t.Errorf("%+v, factor %v, lacking %d, want %+v, %v, %d",
					m, m.factor(tt.space.Free), m.lacking(tt.space.Free), tt.want, tt.factor, tt.lacking)
			}
		})
	}
}

// TestAFloorOnEveryDisk: at half of the headroom all that may go goes, and without a headroom nothing
// does, at any line.
func TestAFloorOnEveryDisk(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		disk := room{Total: 100 + rng.Int64N(1<<50)}
		limits := Limits{Headroom: 0.02 + rng.Float64()*0.98}
		wanted := int64(math.Ceil(float64(disk.Total) * limits.Headroom))
		for _, free := range []int64{0, wanted / 4, wanted / 2, wanted/2 + 1, wanted - 1, wanted} {
			disk.Free = free
			p := limits.Pressure(spaceOf(disk, room{}), volume.Size{})
			if (p.Factor == 0) != (free <= wanted/2) || (p.Factor == 1) != (free == wanted) || (p.Short.Bytes > 0) != (free <= wanted/4) ||
				free <= wanted/2 && p.Lacking.Bytes == 0 {
				t.Fatalf("%v with %v: %+v, wanted are %d", disk, limits, p, wanted)
			}
		}
		line := Line{Bytes: Amount{share: rng.Float64()}, Inodes: Amount{count: rng.Uint64()}}
		p := (Limits{Line: line}).Pressure(spaceOf(disk, disk), volume.Size{Bytes: disk.Total})
		if p.Factor != 1 || p.Lacking != (volume.Size{}) {
			t.Fatalf("%v with line %v and no headroom: %+v", disk, line, p)
		}
	}
}

// TestHigherFactorTakesLess: a volume that is due under less pressure is due at the same time under
// more pressure too.
func TestHigherFactorTakesLess(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 1000 {
		now := epoch.Add(24 * time.Hour)
		low, high := rng.Float64(), rng.Float64()
		low, high = min(low, high), max(low, high)
		at := epoch.Add(time.Duration(rng.Int64N(int64(24 * time.Hour))))
		span := time.Duration(rng.Int64N(int64(48 * time.Hour)))
		if !Deadline(at, span, high).After(now) && Deadline(at, span, low).After(now) {
			t.Fatalf("unpublished at %v, lifespan %v: due under factor %v, and not under %v", at, span, high, low)
		}
	}
}

func TestLimitsCheck(t *testing.T) {
	disk, inodes := room{Total: 1000, Free: 500}, room{Total: 100, Free: 50}
	for text, want := range map[string]string{
		"15%,5%":  "",
		"none":    "",
		"970":     "",
		"98%":     "the kubelet's line 98% leaves none of the file system's 1000 bytes",
		"20Gi":    "the kubelet's line 21474836480 leaves none of the file system's 1000 bytes",
		"15%,100": "the kubelet's line 15%,100 leaves none of the file system's 100 inodes",
	} {
		line, err := ParseLine(text)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := (Limits{Headroom: 0.1, Line: line}).Check(spaceOf(disk, inodes)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
		// Without a headroom nothing goes early, and btrfs has no limit of inodes.
		if err := (Limits{Line: line}).Check(spaceOf(disk, inodes)); err != nil {
			t.Errorf("%s without a headroom: %v", text, err)
		}
		if err := (Limits{Headroom: 0.1, Line: Line{Inodes: line.Inodes}}).Check(spaceOf(disk, room{})); err != nil {
			t.Errorf("%s without a limit of inodes: %v", text, err)
		}
	}
}
