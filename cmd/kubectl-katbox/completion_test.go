package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/katbox/katbox/internal/verbs"
)

// TestComplete: the words so far and the one at the cursor, and what is offered.
func TestComplete(t *testing.T) {
	c, names := nightly(t)
	t.Setenv("KUBECONFIG", c.Kubeconfig("admin"))
	all := func(more ...string) []string {
		return append([]string{names[0], names[1], names[2], names[3]}, more...)
	}
	for _, row := range []struct {
		words string // "_" is an empty word
		want  []string
		only  bool
		then  string
	}{
		{"_", []string{"list", "rm", "check", "completion", "version"}, false, "4"},
		{"li", []string{"list"}, true, "4"},
		{"--context etl li", []string{"list"}, true, "4"},
		{"--cont", []string{"--context"}, true, "4"},
		{"list --al", []string{"--all-namespaces"}, true, "4"},
		{"list --context _", []string{"ci", "etl"}, true, "4"},
		{"list --context e", []string{"etl"}, true, "4"},
		{"list --context=e", []string{"etl"}, true, "4"},
		{"--context e", []string{"etl"}, true, "4"},
		{"list -n _", []string{"ci", "etl"}, true, "4"},
		{"list --user _", []string{"user"}, true, "4"},
		{"list -o _", []string{"wide", "json", "yaml", "name"}, true, "4"},
		{"list --output=j", []string{"json"}, true, "4"},
		{"list --job _", []string{"nightly", "weekly"}, true, "4"},
		{"list --job n", []string{"nightly"}, true, "4"},
		{"list --pod w", []string{"weekly-z9y8x", "web-0"}, true, "4"},
		{"list --node _", []string{"n1", "n2"}, true, "4"},
		{"list --volume _", []string{"cache", "scratch"}, true, "4"},
		{"list --kubeconfig _", nil, true, "0"},
		{"list --since _", nil, true, "4"},
		{"rm _", all("job/nightly", "job/weekly"), true, "4"},
		{"rm night", names[:2], true, "4"},
		{"rm --yes night", names[:2], true, "4"},
		{"rm job/n", []string{"job/nightly"}, true, "4"},
		{"rm pod/w", []string{"pod/weekly-z9y8x", "pod/web-0"}, true, "4"},
		{"rm -n etl _", []string{names[4], "job/load"}, true, "4"},
		{"--context etl rm _", []string{names[4], "job/load"}, true, "4"},
		{"rm -A load", []string{names[4]}, true, "4"},
		{"rm web-0 _", nil, true, "4"},
		{"rm web-0:", nil, true, "4"},
		{"check _", nil, true, "4"},
		{"completion _", []string{"bash", "fish", "zsh"}, true, "4"},
		{"unknown _", []string{"list", "rm"}, false, "4"},
	} {
		words := strings.Fields(row.words)
		for i := range words {
			words[i] = strings.Trim(words[i], "_")
		}
		var out strings.Builder
		code := run(t.Context(), append([]string{"kubectl-katbox", "__complete"}, words...), strings.NewReader(""), &out, &out)
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		var got []string
		for _, line := range lines[:len(lines)-1] {
			candidate, _, _ := strings.Cut(line, "\t")
			got = append(got, candidate)
		}
		missing := slices.DeleteFunc(slices.Clone(row.want), func(want string) bool { return slices.Contains(got, want) })
		if code != 0 || len(missing) > 0 || row.only && len(got) != len(row.want) || lines[len(lines)-1] != ":"+row.then {
			t.Errorf("%q: code %d\n%swant %q :%s", row.words, code, out.String(), row.want, row.then)
		}
	}
}

// TestCompleteWithoutACluster offers what needs none, and says nothing.
func TestCompleteWithoutACluster(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for words, want := range map[string]string{"rm _": ":4\n", "li": "list\tlists retained volumes, the newest first\n:4\n"} {
		var out strings.Builder
		args := strings.Fields(strings.ReplaceAll(words, "_", "x"))
		code := run(t.Context(), append([]string{"kubectl-katbox", "__complete"}, args...), strings.NewReader(""), &out, &out)
		if code != 0 || out.String() != want {
			t.Errorf("%q: code %d, %q", words, code, out.String())
		}
	}
	var out strings.Builder
	code := run(t.Context(), []string{"kubectl-katbox", "__complete"}, strings.NewReader(""), &out, &out)
	if code != 0 || !strings.HasPrefix(out.String(), "list\t") {
		t.Errorf("without words: code %d, %q", code, out.String())
	}
}

// TestCompletionScripts are such that their shells can read them.
func TestCompletionScripts(t *testing.T) {
	u := user{t: t}
	for shell, check := range map[string][]string{"bash": {"-n"}, "zsh": {"-n"}, "fish": {"--no-execute"}} {
		code, script, stderr := u.run("completion", shell)
		if code != 0 || !strings.Contains(script, "kubectl-katbox __complete") {
			t.Errorf("%s: code %d, %q", shell, code, stderr)
		}
		path, err := exec.LookPath(shell)
		if err != nil {
			continue // bash is everywhere where tests run; the others need not be
		}
		cmd := exec.Command(path, check...)
		cmd.Stdin = strings.NewReader(script)
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s refuses the script: %v\n%s", shell, err, said)
		}
	}
	u.wantFailure(verbs.CodeUsage, []string{"bash", "--install"}, "completion")
	u.wantFailure(verbs.CodeUsage, []string{`"tcsh"`, "fish"}, "completion", "tcsh")
	u.wantFailure(verbs.CodeUsage, []string{"--install is for all shells"}, "completion", "--install", "bash")
}

// TestInstallCompletion writes what kubectl calls beside the program that is on PATH.
func TestInstallCompletion(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a script of a shell is run")
	}
	u := user{t: t}
	dir := t.TempDir()
	plugin := filepath.Join(dir, "kubectl-katbox")
	must(t, os.WriteFile(plugin, []byte("#!/bin/sh\necho \"called with: $*\"\n"), 0o755))
	t.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	written := filepath.Join(dir, "kubectl_complete-katbox")
	must(t, os.WriteFile(written, []byte("an old one"), 0o600))
	code, stdout, stderr := u.run("completion", "--install")
	if code != 0 || stdout != "" || !strings.Contains(stderr, written) || strings.Contains(stderr, "Warning") {
		t.Errorf("code %d, %q, %q", code, stdout, stderr)
	}
	said, err := exec.Command(written, "list", "a b", "").CombinedOutput()
	if err != nil || string(said) != "called with: __complete list a b \n" {
		t.Errorf("%v, %q", err, said)
	}
}
