package lifespan

import (
	"fmt"
	"testing"

	"github.com/katbox/katbox/internal/model/volume"
)

// TestYield: deletions that bring much less than they promise are noticed after three, those that bring some room
// go on, and where it is not known what they promise it is taken to be little.
func TestYield(t *testing.T) {
	const mib = 1 << 20
	none, unknown := volume.Size{}, volume.Size{}
	bytes := func(n int64) volume.Size { return volume.Size{Bytes: n, Inodes: 1} }
	lacks := volume.Size{Bytes: 1 << 30}
	for name, tt := range map[string]struct {
		lacking, each, came volume.Size
		want                []Verdict
	}{
		"all of it comes":          {lacks, bytes(mib), bytes(mib), []Verdict{MakesRoom, MakesRoom, MakesRoom}},
		"a tenth of it comes":      {lacks, bytes(10 * mib), bytes(mib), []Verdict{MakesRoom, MakesRoom}},
		"nothing comes":            {lacks, bytes(mib), none, []Verdict{NoVerdict, NoVerdict, MakesNone}},
		"next to nothing comes":    {lacks, bytes(mib), bytes(4096), []Verdict{NoVerdict, NoVerdict, MakesNone}},
		"hardly anything promised": {lacks, bytes(4096), none, []Verdict{NoVerdict, NoVerdict, NoVerdict, NoVerdict}},
		"unknown, and something":   {lacks, unknown, bytes(mib), []Verdict{MakesRoom, MakesRoom}},
		"unknown, and a little":    {lacks, unknown, bytes(10 << 10), []Verdict{MakesRoom, MakesRoom}},
		"unknown, and a directory": {lacks, unknown, bytes(4096), []Verdict{NoVerdict, NoVerdict, MakesNone}},
		"unknown, and nothing":     {lacks, unknown, none, []Verdict{NoVerdict, NoVerdict, MakesNone}},
		"more than is lacking":     {bytes(mib), bytes(1 << 40), bytes(mib / 2), []Verdict{MakesRoom, MakesRoom}},
		"by its deadline, nothing": {none, bytes(mib), none, []Verdict{NoVerdict, NoVerdict, MakesNone}},
		"inodes, all come": {volume.Size{Inodes: 1000}, volume.Size{Bytes: mib, Inodes: 50}, volume.Size{Inodes: 50},
			[]Verdict{MakesRoom, MakesRoom}},
		"inodes, bytes come": {volume.Size{Inodes: 1000}, volume.Size{Bytes: mib, Inodes: 50}, volume.Size{Bytes: mib, Inodes: 1},
			[]Verdict{NoVerdict, NoVerdict, MakesNone}},
	} {
		t.Run(name, func(t *testing.T) {
			m := NewMaking()
			m.Ask()
			m.Measured(tt.lacking, none, none, true)
			for i, want := range tt.want {
				id := volume.ID(fmt.Sprint(i))
				m.Begin(id, tt.each, true)
				m.End(id, true)
				m.Measured(tt.lacking, none, tt.came, false, id)
				got := m.Judge(true)
				if got != want {
					t.Errorf("verdict %d is %v, want %v: %+v", i, got, want, m.yield)
				}
				if doubtful := m.Doubtful(); doubtful != (want == MakesNone || want == NoVerdict) {
					t.Errorf("after %d doubtful %t: %+v", i, doubtful, m.yield)
				}
			}
		})
	}
}

// TestYieldAfterABadVerdict: the next volume is judged alone, either way.
func TestYieldAfterABadVerdict(t *testing.T) {
	none, size, lacks := volume.Size{}, volume.Size{Bytes: 1 << 20, Inodes: 1}, volume.Size{Bytes: 1 << 30}
	m := NewMaking()
	m.Ask()
	m.Measured(lacks, none, none, true)
	try := func(came volume.Size) (v Verdict) {
		m.Begin("csi-1", size, true)
		m.Measured(lacks, none, came, false, "csi-1")
		return m.Judge(true)
	}
	for i, want := range []Verdict{NoVerdict, NoVerdict, MakesNone, MakesNone, MakesRoom, NoVerdict} {
		came := none
		if want == MakesRoom {
			came = size
		}
		if got := try(came); got != want {
			t.Errorf("verdict %d is %v, want %v", i, got, want)
		}
		if want == MakesNone && m.GiveUp().Volumes == 0 {
			t.Errorf("verdict %d is about nothing", i)
		}
	}
	// What is deleted for another reason proves nothing, and what others free before it neither.
	m = NewMaking()
	m.Ask()
	m.Measured(lacks, none, size, true)
	m.Begin("csi-1", size, false)
	m.Measured(lacks, none, size, false, "csi-1")
	if got := m.Judge(true); got != NoVerdict || m.Doubtful() {
		t.Errorf("verdict %v of a volume that expired", got)
	}
}

// TestRoomSeenBefore the measurement that shows what made it is theirs all the same.
func TestRoomSeenBefore(t *testing.T) {
	none, size, lacks := volume.Size{}, volume.Size{Bytes: 16 << 20, Inodes: 2}, volume.Size{Bytes: 1 << 30}
	ids := []volume.ID{"csi-1", "csi-2", "csi-3", "csi-4"}
	for name, tt := range map[string]struct {
		// whether there is pressure when the room comes, and when that of the deletions shows
		first, then bool
		came        volume.Size
		want        Verdict
	}{
		"there is room":               {false, false, size, MakesRoom},
		"there is room for a moment":  {false, true, size, MakesRoom},
		"others made it":              {false, false, none, NoVerdict},
		"others made it for a moment": {false, true, none, MakesNone},
		"there is none":               {true, true, none, MakesNone},
	} {
		m := NewMaking()
		m.Ask()
		m.Measured(lacks, none, none, true)
		for _, id := range ids {
			m.Begin(id, size, true)
		}
		m.Measured(lacks, none, tt.came, false)
		if got := m.Judge(tt.first); got != NoVerdict {
			t.Errorf("%s: %v of those that are on their way", name, got)
		}
		m.Measured(lacks, none, none, false, ids...)
		if got := m.Judge(tt.then); got != tt.want {
			t.Errorf("%s: %v, want %v: %+v", name, got, tt.want, m.yield)
		}
		if m.Judge(false); m.yield != (Yield{}) {
			t.Errorf("%s: without pressure %+v is left", name, m.yield)
		}
	}
}

// TestFewAreOnTheirWay before it is known whether they make room.
func TestFewAreOnTheirWay(t *testing.T) {
	for retained, want := range map[int]int{0: 3, 8: 3, 24: 3, 80: 10} {
		m := NewMaking()
		begun := 0
		for m.MayBegin(retained - begun) {
			m.Begin(volume.ID(fmt.Sprint(begun)), volume.Size{}, true)
			begun++
		}
		if begun < want-1 || begun > want {
			t.Errorf("%d of %d, want %d", begun, retained, want)
		}
	}
}

// TestMoreAreOnTheirWay once others have made room, until one makes none or the pressure is over.
func TestMoreAreOnTheirWay(t *testing.T) {
	size, lacks := volume.Size{Bytes: 1 << 20, Inodes: 1}, volume.Size{Bytes: 1 << 30}
	for name, tt := range map[string]struct {
		then           func(m *Making)
		retained, want int
	}{
		"as many as made room": {func(*Making) {}, 100, 30},
		"half of the retained": {func(*Making) {}, 40, 20},
		"a bad verdict":        {func(m *Making) { m.GiveUp() }, 40, 5},
		"no pressure any more": {func(m *Making) { m.Judge(false) }, 40, 5},
	} {
		m := NewMaking()
		m.Ask()
		m.Measured(lacks, volume.Size{}, volume.Size{}, true)
		for range 30 {
			m.Begin("csi-1", size, true)
			m.Measured(lacks, volume.Size{}, size, false, "csi-1")
			m.Judge(true)
		}
		tt.then(&m)
		begun := 0
		for m.MayBegin(tt.retained) {
			m.Begin(volume.ID(fmt.Sprint(begun)), size, true)
			begun++
		}
		if begun != tt.want {
			t.Errorf("%s: %d, want %d", name, begun, tt.want)
		}
	}
}

// TestRoomOfOthers counts for no more volumes than were on their way when it came.
func TestRoomOfOthers(t *testing.T) {
	none, size, lacks := volume.Size{}, volume.Size{Bytes: 1 << 30, Inodes: 100}, volume.Size{Bytes: 1 << 40}
	for name, pressure := range map[string]bool{"pressure": true, "none for a moment": false} {
		m := NewMaking()
		m.Ask()
		m.Measured(lacks, none, none, true)
		id := func(i int) volume.ID { return volume.ID(fmt.Sprint("csi-", i)) }
		m.Begin(id(0), size, true)
		m.Measured(lacks, none, volume.Size{Bytes: 200 << 30}, false)
		m.Judge(pressure)
		gone := 0
		for verdict := NoVerdict; verdict != MakesNone && gone < 100; gone++ {
			m.Begin(id(gone+1), size, true)
			m.Measured(lacks, none, none, false, id(gone))
			verdict = m.Judge(true)
		}
		if gone > 2*fewDeletions {
			t.Errorf("%s: %d volumes went in vain", name, gone)
		}
	}
}
