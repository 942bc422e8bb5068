package store

import (
	"testing"
	"time"
)

// TestRebooted: each process after a boot is told, until one has recorded what follows, and none
// where it may not have been one.
func TestRebooted(t *testing.T) {
	for name, tt := range map[string]struct {
		play func(*machine)
		want bool
	}{
		"a new store":                          {func(*machine) {}, false},
		"restarted":                            {func(m *machine) { m.down(time.Hour) }, false},
		"booted":                               {func(m *machine) { m.run(time.Hour); m.reboot(time.Hour, 0) }, true},
		"booted, and a start that did not end": {func(m *machine) { m.run(time.Hour); m.reboot(time.Hour, 0); m.down(0) }, true},
		"booted, and seen": {func(m *machine) {
			m.run(time.Hour)
			m.reboot(time.Hour, 0)
			m.seen()
		}, false},
		"booted, seen, and restarted": {func(m *machine) {
			m.run(time.Hour)
			m.reboot(time.Hour, 0)
			m.seen()
			m.down(0)
		}, false},
		"booted, seen, and booted": {func(m *machine) {
			m.run(time.Hour)
			m.reboot(time.Hour, 0)
			m.seen()
			m.run(time.Hour)
			m.reboot(time.Hour, 0)
		}, true},
		"a boot ID of its own":      {func(m *machine) { m.boot++; m.down(time.Minute) }, false},
		"no boot ID":                {func(m *machine) { m.boot = 0; m.down(time.Minute) }, false},
		"the wall clock years back": {func(m *machine) { m.run(time.Hour); m.reboot(time.Hour, -year) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			tt.play(m)
			if got := m.s.Rebooted(); got != tt.want {
				t.Errorf("%t, want %t", got, tt.want)
			}
		})
	}
}

func (m *machine) seen() {
	m.t.Helper()
	if err := m.s.RebootSeen(); err != nil {
		m.t.Fatal(err)
	}
}
