// Docs makes what in the documents comes from elsewhere: the picture of the pressure, from the daemon's own rules, and the
// section of each alert in troubleshooting.md, from the alert rules. Its tests check all documents of the
// repository: the length of README.md, each link, each alert, each command, and the messages that users meet.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if err := run("."); err != nil {
		fmt.Fprintln(os.Stderr, "docs:", err)
		os.Exit(1)
	}
}

const (
	pressureFile        = "deploy/docs/pressure.svg"
	rulesFile           = "deploy/monitoring/rules.yaml"
	troubleshootingFile = "deploy/docs/troubleshooting.md"
	// alertsPart is the name of the part of the page that is made of the alert rules.
	alertsPart = "alerts"
)

// run writes everything into the repository whose root directory is given.
func run(root string) error {
	//nolint:gosec // a person writes files of the repository
	if err := os.WriteFile(filepath.Join(root, pressureFile), []byte(pressurePicture()), 0o644); err != nil {
		return err
	}
	messages, err := messagesPage(root)
	if err != nil {
		return err
	}
	//nolint:gosec // a person writes files of the repository
	if err := os.WriteFile(filepath.Join(root, messagesFile), []byte(messages), 0o644); err != nil {
		return err
	}
	alerts, err := alertSections(filepath.Join(root, rulesFile))
	if err != nil {
		return err
	}
	path := filepath.Join(root, troubleshootingFile)
	page, err := os.ReadFile(path) //nolint:gosec // a file of the repository
	if err != nil {
		return err
	}
	before, _, rest, err := part(string(page), alertsPart)
	if err != nil {
		return fmt.Errorf("%s: %w", troubleshootingFile, err)
	}
	//nolint:gosec // a person writes files of the repository
	return os.WriteFile(path, []byte(before+alerts+rest), 0o644)
}

// part cuts a page into what is before, in and behind one of its parts: what is between two lines.
func part(page, name string) (before, in, behind string, err error) {
	begin, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->\n"
	before, rest, found := strings.Cut(page, begin)
	in, behind, closed := strings.Cut(rest, end)
	if !found || !closed {
		return "", "", "", fmt.Errorf("%w %sand %s", errNoPart, begin, end)
	}
	return before + begin, in, end + behind, nil
}

var errNoPart = errors.New("the page does not have the lines")
