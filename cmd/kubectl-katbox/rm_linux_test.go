package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/katbox/katbox/internal/testing/terminaltest"
)

// TestRemoveAsks on a terminal, and deletes only after yes.
func TestRemoveAsks(t *testing.T) {
	for typed, deleted := range map[string]bool{"yes\n": true, "Y\n": true, "\n": false, "no\n": false, "yess\n": false} {
		c, names := nightly(t)
		u := as(t, c, "eve")
		terminal := terminaltest.Open(t)
		must(t, terminal.Type(typed))
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), []string{"kubectl-katbox", "rm", names[0], "--kubeconfig", u.kubeconfig}, terminal.Back, &stdout, &stderr)
		if (code == 0) != deleted || !strings.Contains(stderr.String(), "Delete volume scratch of pod ci/nightly-x7k2p ("+names[0]) {
			t.Errorf("typed %q: code %d, %q", typed, code, stderr.String())
		}
		if _, left, _ := u.run("list", "-o", "name"); strings.Contains(left, names[0]) == deleted {
			t.Errorf("typed %q: left are\n%s", typed, left)
		}
	}
}
