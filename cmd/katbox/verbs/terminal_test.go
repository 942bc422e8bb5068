package verbs

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// onTerminal runs a verb whose input and output are a terminal on which the user types. It returns
// what the terminal shows.
func onTerminal(t *testing.T, typed string, args ...string) (shown string, code int) {
	t.Helper()
	front, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo terminal: %v", err)
	}
	defer front.Close()
	number, err := unix.IoctlGetInt(int(front.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(front.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	back, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo terminal: %v", err)
	}
	settings, err := unix.IoctlGetTermios(int(back.Fd()), unix.TCGETS)
	if err == nil {
		settings.Lflag &^= unix.ECHO
		err = unix.IoctlSetTermios(int(back.Fd()), unix.TCSETS, settings)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := process(t, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = back, back, back
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := back.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := front.WriteString(typed); err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	buf := make([]byte, 4096)
	for {
		// The last close of the other end is EIO.
		n, err := front.Read(buf)
		all.Write(buf[:n])
		if err != nil {
			break
		}
	}
	return all.String(), codeOfProcess(t, cmd.Wait())
}
