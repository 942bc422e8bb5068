package terminal

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestIsPseudoTerminal(t *testing.T) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatalf("no pseudo terminal: %v", err)
	}
	defer terminal.Close()
	if !IsTerminal(terminal) {
		t.Error("a terminal is not taken for one")
	}
	for name, takes := range map[string]bool{"xterm": true, "tmux-256color": true, "dumb": false, "": false} {
		t.Setenv("TERM", name)
		t.Setenv("NO_COLOR", "")
		if p := NewProgress(terminal, "x", 0, 0); (p != nil) != takes || TakesColors(terminal) != takes {
			t.Errorf("TERM=%s: progress %t, colors %t", name, p != nil, TakesColors(terminal))
		}
		t.Setenv("NO_COLOR", "1")
		if p := NewProgress(terminal, "x", 0, 0); (p != nil) != takes || TakesColors(terminal) {
			t.Errorf("TERM=%s NO_COLOR=1: progress %t, colors %t", name, p != nil, TakesColors(terminal))
		}
	}
	for columns, want := range map[uint16]int{0: 80, 1: 1, 20: 20, 500: 500} {
		if err := unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: 24}); err != nil {
			t.Fatal(err)
		}
		if got := Columns(terminal); got != want {
			t.Errorf("a terminal of %d columns has %d", columns, got)
		}
	}
}
