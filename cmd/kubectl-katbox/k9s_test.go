package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestKeysOfK9s: each entry of deploy/tools/k9s.yaml has what k9s demands and a key of its own, and its command is one that the
// program takes. The cluster does not answer, so each fails with that.
func TestKeysOfK9s(t *testing.T) {
	type entry struct {
		ShortCut, Description, Command string
		Scopes, Args                   []string
		Inputs                         []struct {
			Name, Label, Type string
			Required          bool
		}
	}
	var file struct{ Plugins map[string]entry }
	content, err := os.ReadFile("../../deploy/tools/k9s.yaml")
	if err == nil {
		err = yaml.UnmarshalStrict(content, &file)
	}
	if err != nil || len(file.Plugins) < 12 {
		t.Fatalf("%d entries: %v", len(file.Plugins), err)
	}
	kubeconfig := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(kubeconfig, []byte(nobody), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", kubeconfig)
	// What k9s has for its own in these views: the navigation of vi, sorting, forwarding a port.
	const taken = "GNAPRSTCMXZIOFJ"
	keys := map[string]string{}
	variable := regexp.MustCompile(`\$[A-Z_]+`)
	for name, one := range file.Plugins {
		key, _ := strings.CutPrefix(one.ShortCut, "Shift-")
		if len(one.Scopes) != 1 || one.Description == "" || len(key) != 1 || strings.Contains(taken, key) {
			t.Errorf("%s: %+v", name, one)
			continue
		}
		if other, ok := keys[one.Scopes[0]+one.ShortCut]; ok {
			t.Errorf("%s and %s have the same key", name, other)
		}
		keys[one.Scopes[0]+one.ShortCut] = name
		values := map[string]string{"$NAMESPACE": "ci", "$NAME": "nightly-x7k2p", "$CONTEXT": "none"}
		for _, input := range one.Inputs {
			values["$INPUT_"+strings.ToUpper(input.Name)] = `CUDA error; "it's" $(out)`
		}
		args := make([]string, 0, len(one.Args))
		for _, arg := range one.Args {
			args = append(args, variable.ReplaceAllStringFunc(arg, func(found string) string {
				if values[found] == "" {
					t.Errorf("%s: k9s does not know %s", name, found)
				}
				return values[found]
			}))
		}
		ours := args[min(5, len(args)):]
		var stdout, stderr bytes.Buffer
		run(t.Context(), append([]string{"kubectl-katbox"}, ours...), strings.NewReader(""), &stdout, &stderr)
		if one.Command != "sh" || !strings.Contains(stderr.String(), "127.0.0.1:1") {
			t.Errorf("%s: %q: %s%s", name, args, stdout.String(), stderr.String())
		}
		if got := shown(t, one.Command, args); !slices.Equal(got, append([]string{"katbox"}, ours...)) {
			t.Errorf("%s: kubectl gets %q", name, got)
		}
	}
}

// shown runs a command with a kubectl that says what it gets, a line each, and returns what a pager would show.
func shown(t *testing.T, command string, args []string) []string {
	t.Helper()
	programs := t.TempDir()
	for name, script := range map[string]string{"kubectl": "#!/bin/sh\nprintf '%s\\n' \"$@\"\n", "less": "#!/bin/sh\nexec cat\n"} {
		if err := os.WriteFile(filepath.Join(programs, name), []byte(script), 0o700); err != nil { //nolint:gosec // programs are run
			t.Fatal(err)
		}
	}
	pager := exec.CommandContext(t.Context(), command, args...)
	pager.Env = append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"))
	output, err := pager.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(output), "\n"), "\n")
}
