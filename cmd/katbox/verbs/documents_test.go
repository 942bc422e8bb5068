package verbs

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/katbox/katbox/deploy/docs/pages"
	"github.com/katbox/katbox/internal/cli/verbs"
)

// TestCommandsOfTheDocuments: each verb of katbox that a document shows is one that the program takes. No daemon answers
// here, so each of them fails with that, and not because of its usage. What they do on a node deploy/e2e and the demo
// show.
func TestCommandsOfTheDocuments(t *testing.T) {
	found, err := pages.Commands("../../..")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(socketVariable, t.TempDir()+"/none.sock")
	t.Chdir(t.TempDir())
	ours := regexp.MustCompile(`(?:^|-- /)katbox ([a-z].*?)(?: \| .*| > .*|; done)?$`)
	count := 0
	for _, command := range found {
		match := ours.FindStringSubmatch(command.Text)
		if match == nil {
			continue
		}
		count++
		args := strings.Fields(strings.NewReplacer("NAMESPACE", "ci", "POD", "nightly-x7k2p").Replace(match[1]))
		var stdout, stderr bytes.Buffer
		if code := Run(t.Context(), args, strings.NewReader(""), &stdout, &stderr); code != verbs.CodeFailed ||
			!strings.Contains(stderr.String(), "there is no admin socket") {
			t.Errorf("%s: %s: exit code %d: %s", command.Page, command.Text, code, stderr.String())
		}
	}
	if count < 12 {
		t.Errorf("only %d commands were found", count)
	}
}
