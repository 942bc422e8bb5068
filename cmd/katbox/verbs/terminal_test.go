package verbs

import (
	"testing"

	"github.com/katbox/katbox/internal/testing/terminaltest"
)

// onTerminal runs a verb whose input and output are a terminal on which the user types. It returns
// what the terminal shows.
func onTerminal(t *testing.T, typed string, args ...string) (shown string, code int) {
	t.Helper()
	terminal := terminaltest.Open(t)
	cmd := process(t, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal.Back, terminal.Back, terminal.Back
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := terminal.Back.Close(); err != nil {
		t.Fatal(err)
	}
	if err := terminal.Type(typed); err != nil {
		t.Fatal(err)
	}
	shown = terminal.Shown()
	return shown, codeOfProcess(t, cmd.Wait())
}
