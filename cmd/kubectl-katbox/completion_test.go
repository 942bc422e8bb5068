package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/clustertest"
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
		{"cat --as-group a --as-group b --as admin --as-user-extra x=y -n etl _", []string{names[4] + ":", "job/load:"}, true, "6"},
		{"tail -n 100 job/n", []string{"job/nightly:"}, true, "6"},
		{"tail -n etl job/_", []string{"job/load:"}, true, "6"},
		{"rm -A load", []string{names[4]}, true, "4"},
		{"rm web-0 _", nil, true, "4"},
		{"grep night", nil, true, "4"},
		{"grep -i night job/n", []string{"job/nightly"}, true, "4"},
		{"rm web-0:", nil, true, "4"},
		{"check _", nil, true, "4"},
		{"check --params _", nil, true, "4"},
		{"check --would-convert -f _", nil, true, "0"},
		{"debug --dry-run _", []string{"client", "none"}, true, "4"},
		{"stat -o _", []string{"json"}, true, "4"},
		{"tail -n e", []string{"etl"}, true, "4"},
		{"tail --namespace e", []string{"etl"}, true, "4"},
		{"completion _", []string{"bash", "fish", "powershell", "zsh"}, true, "4"},
		{"help st", []string{"stat"}, true, "4"},
		{"unknown _", nil, true, "4"},
	} {
		words := strings.Fields(row.words)
		for i := range words {
			words[i] = strings.Trim(words[i], "_")
		}
		var out strings.Builder
		code := run(t.Context(), append([]string{"kubectl-katbox", "__candidates"}, words...), strings.NewReader(""), &out, &out)
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

// TestCompletePaths: what is in the directory that a path names so far, of the newest volume that the target matches.
func TestCompletePaths(t *testing.T) {
	c := clustertest.New(t)
	n := c.Node("n1")
	name, dir := n.Put(1, "ci", "nightly", "nightly-x7k2p")
	_, older := n.Put(100, "ci", "nightly", "nightly-a2b3c", func(d *volume.Description) { d.Record.VolumeName = "cache" })
	someFiles(t, dir)
	write(t, dir+"/out/part 1", "1")
	write(t, dir+"/out/part\n2", "2")
	for _, special := range "$`\"'\\*?[]{}()<>|&;!#~^\t" {
		write(t, fmt.Sprintf("%s/odd/a%cb", dir, special), "")
	}
	write(t, dir+"/odd/ü", "")
	write(t, dir+"/12:00.log", "3")
	write(t, older+"/old", "4")
	must(t, os.Symlink("log.txt", dir+"/out/last"))
	t.Setenv("KUBECONFIG", c.Kubeconfig("eve"))
	for _, row := range []struct {
		verb, word string
		want       []string
		then       string
	}{
		{"ls", "nightly-x7k2p:", []string{"nightly-x7k2p:12:00.log", "nightly-x7k2p:link", "nightly-x7k2p:odd/", "nightly-x7k2p:out/"}, "6"},
		{"ls", "job/nightly:ou", []string{"job/nightly:out/"}, "6"},
		{"ls", "job/nightly:/ou", []string{"job/nightly:/out/"}, "6"},
		{"ls --volume cache", "job/nightly:", []string{"job/nightly:old"}, "4"},
		{"ls --volume none", "job/nightly:", nil, "4"},
		{"stat", name + ":.", []string{name + ":.cache/"}, "6"},
		{"cat", name + ":", []string{name + ":12:00.log", name + ":odd/", name + ":out/"}, "6"},
		{"cat", name + ":out", []string{name + ":out/"}, "6"},
		{"cat", name + ":out/", []string{name + ":out/deep/", name + ":out/log.txt"}, "6"},
		{"cat", name + ":odd/", []string{name + ":odd/ü"}, "4"},
		{"cat", name + "::odd/a%24", []string{name + "::odd/a%24b"}, "4"},
		{"cat", name + ":out/l", []string{name + ":out/log.txt"}, "4"},
		{"cat", name + ":12:", []string{name + ":12:00.log"}, "4"},
		{"cat", name + "::out/p", []string{name + "::out/part%0A2", name + "::out/part%201"}, "6"},
		{"cat", name + "::", []string{name + "::12%3A00.log", name + "::odd/", name + "::out/"}, "6"},
		{"cat x:y", name + ":out/l", []string{name + ":out/log.txt"}, "4"},
		{"tail -n 3", name + ":out/l", []string{name + ":out/log.txt"}, "4"},
		{"stat", name + ":out/l", []string{name + ":out/last", name + ":out/log.txt"}, "6"},
		{"cp", name + ":out/d", []string{name + ":out/deep/"}, "6"},
		{"ui", name + ":out/d", []string{name + ":out/deep/"}, "6"},
		{"ls", name + ":none/", nil, "6"},
		{"ls", name + ":../", nil, "4"},
		{"ls", "none:", nil, "4"},
		{"ls", "none/none:", nil, "4"},
		{"rm", name + ":o", nil, "4"},
		{"cp " + name, name + ":o", nil, "0"},
	} {
		var out strings.Builder
		words := append(append([]string{"kubectl-katbox", "__candidates"}, strings.Fields(row.verb)...), row.word)
		code := run(t.Context(), words, strings.NewReader(""), &out, &out)
		want := strings.Join(append(slices.Clone(row.want), ":"+row.then+"\n"), "\n")
		if code != 0 || out.String() != want {
			t.Errorf("%s %s: code %d\n%swant\n%s", row.verb, row.word, code, &out, want)
		}
	}
}

// TestCompletePathsOfManyFiles offers some of them.
func TestCompletePathsOfManyFiles(t *testing.T) {
	c := clustertest.New(t)
	name, dir := c.Node("n1").Put(1, "ci", "nightly", "nightly-x7k2p")
	for i := range mostCandidates + 10 {
		must(t, os.WriteFile(fmt.Sprintf("%s/f%04d", dir, i), nil, 0o644))
	}
	t.Setenv("KUBECONFIG", c.Kubeconfig("eve"))
	for word, want := range map[string]int{":": mostCandidates, ":f100": 10, ":f1001": 1} {
		var out strings.Builder
		code := run(t.Context(), []string{"kubectl-katbox", "__candidates", "ls", name + word}, strings.NewReader(""), &out, &out)
		if got := strings.Count(out.String(), "\n") - 1; code != 0 || got != want {
			t.Errorf("%s: code %d, %d candidates, want %d", word, code, got, want)
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
	if code != 0 || !strings.Contains(out.String(), "\nlist\t") {
		t.Errorf("without words: code %d, %q", code, out.String())
	}
}

// TestCompletionScripts are such that their shells can read them.
func TestCompletionScripts(t *testing.T) {
	u := user{t: t}
	for shell, check := range map[string][]string{
		"bash": {"-n"}, "zsh": {"-n"}, "fish": {"--no-execute"}, "powershell": {"-NoProfile", "-Command", "-"},
	} {
		code, script, stderr := u.run("completion", shell)
		if code != 0 || !strings.Contains(script, " __complete ") {
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

// TestCompletionInBash: what bash puts into the command line behind what it takes for a word, also where a path has a colon.
func TestCompletionInBash(t *testing.T) {
	const helpers = "/usr/share/bash-completion/bash_completion"
	if _, err := os.Stat(helpers); err != nil {
		t.Skip("this machine lacks bash-completion:", err)
	}
	_, script, _ := user{t: t}.run("completion", "bash")
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "kubectl-katbox"), []byte(`#!/bin/sh
echo "$*" >>"$ASKED"
printf '%s\n' web-0:12:00.log web-0:12:out/ :6
`), 0o755), os.WriteFile(filepath.Join(dir, "script"), []byte(script), 0o600))
	for breaks, want := range map[string]string{
		` "'><=;|&(:`: "00.log\nout/\n", ` "'><;|&(`: "web-0:12:00.log\nweb-0:12:out/\n",
	} {
		asked := filepath.Join(t.TempDir(), "asked")
		// A shell's words are those between the characters that break them.
		cmd := exec.Command("bash", "-c", `source "$1"; source "$2"
COMP_WORDBREAKS=$3 COMP_LINE="kubectl-katbox cat web-0:12:" COMP_POINT=28 COMP_TYPE=9
COMP_WORDS=(kubectl-katbox cat web-0:12:) COMP_CWORD=2
[[ $3 != *:* ]] || COMP_WORDS=(kubectl-katbox cat web-0 : 12 :) COMP_CWORD=5
__start_kubectl-katbox; printf '%s\n' "${COMPREPLY[@]}"`, "bash", helpers, filepath.Join(dir, "script"), breaks)
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "ASKED="+asked)
		if said, err := cmd.Output(); err != nil || string(said) != want {
			t.Errorf("%s: %v, %q, want %q", breaks, err, said, want)
		}
		if text, err := os.ReadFile(asked); err != nil || string(text) != "__complete cat web-0:12:\n" {
			t.Errorf("%s: the program was asked %q, %v", breaks, text, err)
		}
	}
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
