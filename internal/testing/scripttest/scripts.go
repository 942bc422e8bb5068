// Package scripttest runs the tests of a page's scripts.
package scripttest

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
)

// oldest is the first major version of Node.js that runs them.
const oldest = 20

// Run runs the tests in the files that a pattern of [filepath.Glob] matches, where the machine has a Node.js that can.
func Run(t *testing.T, pattern string) {
	t.Helper()
	var major int
	version, err := exec.Command("node", "--version").Output()
	if err != nil {
		t.Skipf("this machine lacks Node.js %d: %v", oldest, err)
	}
	if _, err := fmt.Sscanf(string(version), "v%d.", &major); err != nil || major < oldest {
		t.Skipf("this machine lacks Node.js %d: it has %q", oldest, version)
	}
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no tests of scripts: %v", err)
	}
	if out, err := exec.Command("node", append([]string{"--test"}, files...)...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
