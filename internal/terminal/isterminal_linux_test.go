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
	if p := NewProgress(terminal, "x", 0, 0); p == nil {
		t.Error("no progress is shown on a terminal")
	}
}
