package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/terminal"
)

// candidatesVerb is what completion starts this program with; see [complete].
const candidatesVerb = "__candidates"

// completeLimit is how long a shell waits, whatever the kubeconfig names and the cluster does; tests that want an answer
// raise it.
var completeLimit = 3 * time.Second

const (
	// writeTime is how much of completeLimit is left to write what was found.
	writeTime = 500 * time.Millisecond
	// mostCandidates is how many names are offered.
	mostCandidates = 1000
)

// complete writes what [candidates] writes. That runs in a process of its own without a terminal: the
// kubeconfig may name a program that waits for a login, which ends with all that it started once the
// limit is over, and can neither ask the user nor write into the command line.
func complete(ctx context.Context, words []string, stdout io.Writer) int {
	ctx, cancel := context.WithTimeout(ctx, completeLimit)
	defer cancel()
	found := fmt.Appendf(nil, ":%d\n", cobra.ShellCompDirectiveNoFileComp)
	if self, err := os.Executable(); err == nil {
		var out bytes.Buffer
		cmd := exec.CommandContext(ctx, self, append([]string{candidatesVerb}, words...)...)
		// Standard error is no pipe: what the login leaves running, such as an agent, may have it open for days.
		cmd.Stdout = &out
		runAlone(cmd)
		if err := cmd.Run(); err == nil {
			found = out.Bytes()
		}
	}
	_, _ = stdout.Write(found) // a shell that has gone needs nothing
	return 0
}

// candidates writes what the last of words may become, each in a line, and then how a shell goes on, as cobra does.
func candidates(ctx context.Context, root *cobra.Command, words []string, stdout io.Writer) int {
	endTogether()
	if len(words) == 0 {
		words = []string{""}
	}
	ctx, cancel := context.WithTimeout(ctx, completeLimit-writeTime)
	defer cancel()
	for _, verb := range append(root.Commands(), root) {
		verb.FParseErrWhitelist.UnknownFlags = true // a user sees what is wrong when the command runs
	}
	return verbs.Run(ctx, root, append([]string{cobra.ShellCompRequestCmd}, words...), strings.NewReader(""), stdout, io.Discard)
}

// offers are the candidates for a word.
type offers struct {
	word       string
	candidates []cobra.Completion
	seen       map[string]bool
}

func offersFor(word string) *offers { return &offers{word: word, seen: map[string]bool{}} }

// add adds a candidate if it begins with the word, and reports whether more are wanted. A pod
// chooses the names of its files, and a shell puts candidates into the command line as they are; the completion of
// kubectl for bash even runs the commands in them. So add takes only candidates that are one word in every shell.
func (o *offers) add(text, description string) bool {
	if strings.HasPrefix(text, o.word) && isWord(text) && !o.seen[text] {
		o.seen[text] = true
		if description != "" {
			text = cobra.CompletionWithDesc(text, terminal.Clean(description))
		}
		o.candidates = append(o.candidates, text)
	}
	return len(o.candidates) < mostCandidates
}

// isWord reports whether a text is one word in every shell, and stands for itself.
func isWord(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_./:@%+=,", r)
	})
}

// oneOf completes a word to one of a few.
func oneOf(all ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		o := offersFor(word)
		for _, one := range all {
			o.add(one, "")
		}
		return o.candidates, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeFlag says how the value of a flag is completed.
func completeFlag(verb *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := verb.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err) // the verb has no such flag
	}
}
