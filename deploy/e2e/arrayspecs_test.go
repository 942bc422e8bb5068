//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"
)

// specsAtOnce is how many specs run at the same time: they wait more than they compute.
const specsAtOnce = 2

// TestArraySpecs runs the specs for storage of Kubernetes itself with volumes of the array, for each protocol by itself:
// the names of the specs do not tell one from the other.
func TestArraySpecs(t *testing.T) {
	program := os.Getenv("KATBOX_E2E_SPECS")
	if program == "" {
		t.Skip("the specs are not there: \"make e2e SUITE=array-specs\" runs this")
	}
	focus, err := regexp.Compile(os.Getenv("KATBOX_E2E_SPECS_FOCUS"))
	if err != nil {
		t.Fatalf("KATBOX_E2E_SPECS_FOCUS: %v", err)
	}
	exclusions, err := readExclusions(specsFile(t, "left-out"))
	if err != nil {
		t.Fatal(err)
	}
	a := newArrayCluster(t)
	for _, protocol := range []string{"nfs", "iscsi"} {
		t.Run(protocol, func(t *testing.T) {
			part := a.in(t)
			part.runSpecs(program, protocol, exclusions.of(protocol), focus)
			part.wantNothingLeft()
			part.wantNothingOnNode()
			part.wantAllowed()
		})
	}
}

// specsFile is a file about the specs.
func specsFile(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "deploy", "e2e", "array", "specs-"+name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// runSpecs runs the specs with volumes of one protocol, and adds a table of the results to those at the end.
func (a *arrayCluster) runSpecs(program, protocol string, exclusions exclusions, focus *regexp.Regexp) {
	a.t.Helper()
	name, logs := "specs-"+protocol, filepath.Join(a.state, "logs")
	log, err := os.Create(filepath.Join(logs, name+".log"))
	if err != nil {
		a.t.Fatal(err)
	}
	defer log.Close()
	args := []string{
		"--procs", strconv.Itoa(specsAtOnce), "-v", "--no-color", "--output-dir", logs, "--json-report", name + ".json",
		"--focus", focus.String(),
	}
	for _, exclusion := range exclusions {
		args = append(args, "--skip", exclusion.Specs.String())
	}
	if deadline, ok := a.t.Deadline(); ok { // ginkgo ends first, and says what has run
		args = append(args, "--timeout", (time.Until(deadline) - 2*patience).String())
	}
	args = append(args, program, "--", "-kubeconfig", os.Getenv("KUBECONFIG"), "-kubectl-path", a.kubectlProgram(),
		"-storage.testdriver", specsFile(a.t, protocol))
	began := time.Now()
	cmd := exec.Command(a.bin("ginkgo"), args...)
	cmd.Stdout = &specsProgress{log: log, began: began}
	cmd.Stderr = cmd.Stdout
	failed := cmd.Run()
	content, err := os.ReadFile(filepath.Join(logs, name+".json"))
	if err != nil {
		a.t.Fatalf("%v, after %v; see %s", err, failed, log.Name())
	}
	var suites []struct{ SpecReports []spec }
	if err := json.Unmarshal(content, &suites); err != nil || len(suites) != 1 {
		a.t.Fatalf("the report %s.json has %d suites: %v", name, len(suites), err)
	}
	results := newSpecResults(suites[0].SpecReports, exclusions, focus)
	tables = append(tables, fmt.Sprintf("The specs for storage of Kubernetes, on %s, %.0f s:\n%s",
		protocol, time.Since(began).Seconds(), results))
	for _, exclusion := range results.stale {
		a.t.Errorf("the list of what is left out has %q, and no spec has such a name", exclusion)
	}
	if failed != nil || results.all[specPassed] == 0 {
		a.t.Errorf("%d specs passed, %d failed: %v; see %s", results.all[specPassed], results.all[specFailed], failed, log.Name())
	}
}

// kubectlProgram makes a program that is kubectl and nothing else, as the specs want it.
func (a *arrayCluster) kubectlProgram() string {
	a.t.Helper()
	program, err := filepath.Abs(a.kube)
	if err != nil {
		a.t.Fatal(err)
	}
	path := filepath.Join(a.t.TempDir(), "kubectl")
	if err := os.WriteFile(path, fmt.Appendf(nil, "#!/bin/sh\nexec '%s' kubectl \"$@\"\n", program), 0o755); err != nil {
		a.t.Fatal(err)
	}
	return path
}

// specsProgress keeps the log of the specs, and prints how each that has run ended.
type specsProgress struct {
	log   *os.File
	began time.Time
	// rest is the line that has not ended, end the last line that told the end of a spec.
	rest, end []byte
	ended     int
}

// When a spec has ended, ginkgo writes a line with the first of these, and then one with the spec's name.
var (
	endOfSpec  = []byte("• [")
	nameOfSpec = []byte("External Storage ")
)

func (p *specsProgress) Write(text []byte) (int, error) {
	p.rest = append(p.rest, text...)
	for {
		line, rest, whole := bytes.Cut(p.rest, []byte("\n"))
		if !whole {
			return p.log.Write(text)
		}
		switch {
		case bytes.HasPrefix(line, endOfSpec):
			p.end = bytes.Clone(line[len(endOfSpec)-1:])
		case p.end != nil && bytes.HasPrefix(line, nameOfSpec):
			p.ended++
			fmt.Printf("%.0f s: spec %d: %s %s\n", time.Since(p.began).Seconds(), p.ended, p.end, line[len(nameOfSpec):])
			p.end = nil
		}
		p.rest = bytes.Clone(rest)
	}
}
