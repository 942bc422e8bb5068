package lifespan

import (
	"testing"

	"github.com/katbox/katbox/internal/model/volume"
)

// TestMaking plays events to an account, and compares what it answers.
func TestMaking(t *testing.T) {
	volumeOf := func(bytes int64) volume.Size { return volume.Size{Bytes: bytes, Inodes: 1} }
	unknown := volume.Size{}
	lacks := func(bytes int64) volume.Size { return volume.Size{Bytes: bytes} }
	const one, two = volume.ID("csi-1"), volume.ID("csi-2")
	for name, tt := range map[string]struct {
		play           func(m *Making)
		settled, lacks bool
	}{
		"a start waits for the trash": {func(m *Making) { m.Measured(lacks(10), volume.Size{}, volume.Size{}, false) }, false, false},
		"the answer shows the trash": {func(m *Making) {
			m.Ask()
			m.Measured(lacks(10), volume.Size{}, volume.Size{}, true)
		}, true, true},
		"the trash of before does not keep up": {func(m *Making) {
			m.Measured(lacks(10), volume.Size{}, volume.Size{}, false)
			m.Measured(lacks(11), volume.Size{}, volume.Size{}, false)
		}, false, true},
		"nothing is lacking": {func(m *Making) {
			m.Ask()
			m.Measured(volume.Size{}, volume.Size{}, volume.Size{}, true)
		}, true, false},
		"enough is on its way": {func(m *Making) {
			m.Ask()
			m.Measured(lacks(10), volume.Size{}, volume.Size{}, true)
			m.Begin(one, volumeOf(10), true)
		}, false, false},
		"not enough is on its way": {func(m *Making) {
			m.Ask()
			m.Measured(lacks(10), volume.Size{}, volume.Size{}, true)
			m.Begin(one, volumeOf(9), true)
		}, false, true},
		"more and more is needed": {func(m *Making) {
			m.Ask()
			m.Measured(lacks(10), volume.Size{}, volume.Size{}, true)
			m.Begin(one, volumeOf(10), true)
			m.End(one, true)
			m.Measured(lacks(20), volume.Size{}, volume.Size{}, false)
		}, false, true},
		"one that failed makes no room": {func(m *Making) {
			m.Ask()
			m.Measured(lacks(10), volume.Size{}, volume.Size{}, true)
			m.Begin(one, volumeOf(10), true)
			m.End(one, false)
		}, true, true},
		"the size of one is not known": {func(m *Making) {
			m.Ask()
			m.Measured(lacks(10), volume.Size{}, volume.Size{}, true)
			m.Begin(one, unknown, true)
		}, false, false},
		"and less is free all the same": {func(m *Making) {
			m.Ask()
			m.Measured(lacks(10), volume.Size{}, volume.Size{}, true)
			m.Begin(one, unknown, true)
			m.Measured(lacks(11), volume.Size{}, volume.Size{}, false)
		}, false, true},
		"one more for each measurement": {func(m *Making) {
			m.Ask()
			m.Measured(lacks(10), volume.Size{}, volume.Size{}, true)
			m.Begin(one, unknown, true)
			m.Measured(lacks(11), volume.Size{}, volume.Size{}, false)
			m.Begin(two, unknown, true)
		}, false, false},
		"a large file takes its time": {func(m *Making) {
			m.Ask()
			m.Measured(lacks(10), volume.Size{}, volume.Size{}, true)
			m.Begin(one, unknown, true)
			m.Measured(lacks(10), volume.Size{}, volume.Size{}, false)
		}, false, false},
		"erased, but not asked for": {func(m *Making) {
			m.Ask()
			m.Measured(lacks(10), volume.Size{}, volume.Size{}, true)
			m.Begin(one, volumeOf(10), true)
			m.End(one, true)
			m.Measured(lacks(5), volume.Size{}, volume.Size{}, false)
		}, false, false},
		"an answer knows nothing of what came after the question": {func(m *Making) {
			m.Ask()
			m.Begin(one, volumeOf(10), true)
			m.End(one, true)
			m.Measured(lacks(5), volume.Size{}, volume.Size{}, true)
		}, false, false},
		"asked and answered": {func(m *Making) {
			m.Ask()
			m.Measured(lacks(10), volume.Size{}, volume.Size{}, true)
			m.Begin(one, volumeOf(10), true)
			m.End(one, true)
			m.Ask()
			m.Measured(lacks(5), volume.Size{}, volume.Size{}, true)
		}, true, true},
		"erased before its deletion has ended": {func(m *Making) {
			m.Ask()
			m.Measured(lacks(10), volume.Size{}, volume.Size{}, true)
			m.Begin(one, volumeOf(10), true)
			m.Measured(lacks(5), volume.Size{}, volume.Size{}, false, one)
			m.End(one, true)
		}, true, true},
		"one of two is erased": {func(m *Making) {
			m.Ask()
			m.Measured(lacks(20), volume.Size{}, volume.Size{}, true)
			m.Begin(one, volumeOf(10), true)
			m.Begin(two, volumeOf(10), true)
			m.End(two, true)
			m.Measured(lacks(11), volume.Size{}, volume.Size{}, false, two)
		}, false, true},
		"inodes alone": {func(m *Making) {
			m.Ask()
			m.Measured(volume.Size{Inodes: 10}, volume.Size{}, volume.Size{}, true)
			m.Begin(one, volume.Size{Bytes: 1 << 40, Inodes: 9}, true)
		}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			m := NewMaking()
			tt.play(&m)
			if m.Settled() != tt.settled || m.Lacks() != tt.lacks {
				t.Errorf("settled %t, lacks %t, want %t and %t", m.Settled(), m.Lacks(), tt.settled, tt.lacks)
			}
		})
	}
}

// TestLacksBrink: room that leaves the brink is enough for it, though more is lacking.
func TestLacksBrink(t *testing.T) {
	m := NewMaking()
	m.Ask()
	m.Measured(volume.Size{Bytes: 100}, volume.Size{Bytes: 10}, volume.Size{}, true)
	for i, want := range []bool{true, true, false} {
		if got := m.LacksBrink(); got != want || !m.Lacks() {
			t.Errorf("%+v: the brink lacks room: %t, want %t, and the headroom does", m, got, want)
		}
		m.Begin(volume.ID(rune('a'+i)), volume.Size{Bytes: 5, Inodes: 1}, true)
	}
	m.Measured(volume.Size{Bytes: 100}, volume.Size{Inodes: 4}, volume.Size{}, false)
	if !m.LacksBrink() {
		t.Error("three inodes are on their way, and four are missing")
	}
}

// TestShort: what is missing up to the brink, which is the floor on a disk that the kubelet looks at.
func TestShort(t *testing.T) {
	l := Limits{Headroom: 0.1, Line: Line{Bytes: Amount{share: 0.15}}}
	for free, want := range map[int64]int64{0: 171, 169: 2, 170: 1, 171: 0, 1000: 0} {
		p := l.Pressure(volume.Space{Total: volume.Size{Bytes: 1000}, Free: volume.Size{Bytes: free}}, volume.Size{})
		if p.Short.Bytes != want || (p.Factor == 0) != (want > 0) {
			t.Errorf("%d free: %d are missing and the factor is %v, want %d", free, p.Short.Bytes, p.Factor, want)
		}
	}
	if p := (Limits{}).Pressure(volume.Space{Total: volume.Size{Bytes: 1000}}, volume.Size{}); p.Short != (volume.Size{}) {
		t.Errorf("without a headroom %v is missing", p.Short)
	}
}
