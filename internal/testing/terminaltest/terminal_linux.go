// Package terminaltest gives tests a terminal.
package terminaltest

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Terminal is a pseudo terminal that does not echo.
type Terminal struct {
	// Back is what a program has as its standard input and output. The test closes it once no program of
	// the test needs it any more.
	Back  *os.File
	front *os.File
}

// Open returns a terminal that takes colors and escape sequences.
func Open(t *testing.T) *Terminal {
	t.Helper()
	t.Setenv("TERM", "xterm-256color")
	t.Setenv("NO_COLOR", "")
	front, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatalf("no pseudo terminal: %v", err)
	}
	t.Cleanup(func() { front.Close() })
	number, err := unix.IoctlGetInt(int(front.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(front.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	back, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatalf("no pseudo terminal: %v", err)
	}
	t.Cleanup(func() { back.Close() })
	settings, err := unix.IoctlGetTermios(int(back.Fd()), unix.TCGETS)
	if err == nil {
		settings.Lflag &^= unix.ECHO
		err = unix.IoctlSetTermios(int(back.Fd()), unix.TCSETS, settings)
	}
	if err != nil {
		t.Fatal(err)
	}
	return &Terminal{Back: back, front: front}
}

// Type is what the user types.
func (t *Terminal) Type(text string) error {
	_, err := t.front.WriteString(text)
	return err
}

// Shown returns what the terminal shows until all files of its back are closed.
func (t *Terminal) Shown() string {
	var all strings.Builder
	buf := make([]byte, 4096)
	for {
		// The last close of the other end is EIO.
		n, err := t.front.Read(buf)
		all.Write(buf[:n])
		if err != nil {
			return all.String()
		}
	}
}
