package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/katbox/katbox/deploy/docs/pages"
	"github.com/katbox/katbox/internal/cli/verbs"
)

// nobody is a kubeconfig that names a cluster which does not answer.
const nobody = `apiVersion: v1
kind: Config
clusters: [{name: none, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: none, context: {cluster: none}}]
current-context: none
`

// TestCommandsOfTheDocuments: each "kubectl katbox" that a document shows is one that the program takes. The
// cluster does not answer, so each of them fails with that, and not because of its usage. What they do in a cluster deploy/e2e shows.
func TestCommandsOfTheDocuments(t *testing.T) {
	found, err := pages.Commands("../..")
	if err != nil {
		t.Fatal(err)
	}
	// Those in the text are parts of commands, or have a form for all: they are taken where they begin with a verb and
	// have an argument.
	inText := regexp.MustCompile("`(kubectl katbox [a-z]+ [^`]*)`")
	for _, page := range []string{"README.md", "deploy/docs/faq.md", "deploy/docs/security.md", "deploy/docs/troubleshooting.md"} {
		content, err := os.ReadFile(filepath.Join("../..", page))
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range inText.FindAllStringSubmatch(string(content), -1) {
			found = append(found, pages.Command{Page: page, Text: match[1]})
		}
	}
	kubeconfig := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(kubeconfig, []byte(nobody), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", kubeconfig)
	t.Chdir(t.TempDir())
	names := strings.NewReplacer("NAMESPACE", "ci", "NAME", "nightly", "POD", "nightly-x7k2p")
	count := 0
	for _, command := range found {
		text, isOurs := strings.CutPrefix(command.Text, "kubectl katbox ")
		// The tests of ui are those that open a page, and the version alone asks no cluster.
		if !isOurs || strings.HasPrefix(text, "ui") || text == "version --client" {
			continue
		}
		count++
		var stdout, stderr bytes.Buffer
		args := append([]string{"kubectl-katbox"}, words(names.Replace(text))...)
		if len(args) > 1 && args[1] == "rm" {
			args = append(args, "--yes") // a terminal asks
		}
		want := verbs.CodeFailed
		if len(args) > 1 && args[1] == "grep" {
			want = 2 // as grep(1)
		}
		code := run(t.Context(), args, strings.NewReader(""), &stdout, &stderr)
		if code != want || !strings.Contains(stdout.String()+stderr.String(), "127.0.0.1:1") {
			t.Errorf("%s: %s: exit code %d: %s%s", command.Page, command.Text, code, stdout.String(), stderr.String())
		}
	}
	if count < 15 {
		t.Errorf("only %d commands were found", count)
	}
}

// words takes a command apart as a shell does, with double quotes.
func words(command string) []string {
	var found []string
	for i, part := range strings.Split(command, `"`) {
		if i%2 == 1 {
			found = append(found, part)
		} else {
			found = append(found, strings.Fields(part)...)
		}
	}
	return found
}
