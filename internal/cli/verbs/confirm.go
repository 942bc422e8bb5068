package verbs

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/katbox/katbox/internal/model/terminal"
)

// CanAsk returns an error if there is no user at a terminal to ask.
func (s *Session) CanAsk() error {
	if !terminal.IsTerminal(s.Stdin) {
		return WrongUsage("standard input is not a terminal, so there is no user to ask whether to delete: in a script give --yes")
	}
	return nil
}

// ConfirmDelete asks the user whether to delete what a text names. Anything but yes is an error.
func (s *Session) ConfirmDelete(what string) error {
	fmt.Fprintf(s.Stderr, "Delete %s? [y/N] ", terminal.Clean(what))
	answer, err := bufio.NewReader(s.Stdin).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return errors.New("nothing was deleted")
}
