package store

import (
	"testing"
	"time"
)

// TestRebooted: only the first process after a boot is told, and none where it may not
// have been one.
func TestRebooted(t *testing.T) {
	for name, tt := range map[string]struct {
		play func(*machine)
		want bool
	}{
		"a new store":               {func(*machine) {}, false},
		"restarted":                 {func(m *machine) { m.down(time.Hour) }, false},
		"booted":                    {func(m *machine) { m.run(time.Hour); m.reboot(time.Hour, 0) }, true},
		"booted, then restarted":    {func(m *machine) { m.run(time.Hour); m.reboot(time.Hour, 0); m.down(0) }, false},
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
