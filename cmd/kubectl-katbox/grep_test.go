package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/testing/clustertest"
)

// failed is a cluster of two nodes, whose pods of Job nightly have ended with the same line. It returns the names of its
// volumes.
func failed(t *testing.T) (c *clustertest.Cluster, names []string) {
	t.Helper()
	c = clustertest.New(t)
	n1, n2 := c.Node("n1"), c.Node("n2")
	for i, pod := range []string{"nightly-a", "nightly-b", "nightly-c"} {
		n := n1
		if i == 2 {
			n = n2
		}
		name, dir := n.Put(10+i, "ci", "nightly", pod)
		write(t, filepath.Join(dir, "out/log.txt"), "begin\nCUDA error: out of memory\nend "+pod+"\n")
		write(t, filepath.Join(dir, "core"), "\x7fELF\x00CUDA error")
		names = append(names, name)
	}
	_, dir := n1.Put(20, "etl", "load", "load-a")
	write(t, filepath.Join(dir, "log"), "CUDA error of another namespace\n")
	return c, names
}

// wantLines wants these lines in any order, and that each file that is no text is told of.
func (u user) wantLines(want []string, args ...string) {
	u.t.Helper()
	code, stdout, stderr := u.run(append([]string{"grep"}, args...)...)
	got := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
	slices.Sort(got)
	slices.Sort(want)
	if code != 0 || !slices.Equal(got, want) || stderr != "" && !strings.Contains(stderr, "no text") {
		u.t.Errorf("%q: code %d, stderr %q, found %q, want %q", args, code, stderr, got, want)
	}
}

func TestGrep(t *testing.T) {
	c, names := failed(t)
	eve := as(t, c, "eve")
	of := func(rest string, volumes ...string) (all []string) {
		for _, name := range volumes {
			all = append(all, name+":"+rest)
		}
		return all
	}
	line := "out/log.txt:2:CUDA error: out of memory"
	eve.wantLines(of(line, names...), "CUDA error")
	eve.wantLines(of(line, names[0]), "CUDA error", names[0])
	eve.wantLines(of(line, names[1]), "cuda ERR", "pod/nightly-b", "-i")
	eve.wantLines(of(line, names...), "CUDA error", "job/nightly", "--files", "*.txt")
	eve.wantLines(of("out/log.txt", names...), "-l", "CUDA error")
	eve.wantLines(of("out/log.txt:2", names[2]), "-c", "e[nr]", "nightly-c", "--files", "out/*")
	eve.wantLines(of(line, names...), "CUDA error", "--selector", "batch.kubernetes.io/job-name=nightly", "--max-bytes", "1Gi")
	code, stdout, _ := eve.run("grep", "-C", "1", "CUDA", names[0])
	if want := strings.Join(of("out/log.txt-1-begin", names[0]), "") + "\n" + names[0] + ":" + line + "\n" + names[0] +
		":out/log.txt-3-end nightly-a\n"; code != 0 || stdout != want {
		t.Errorf("with context: %d %q, want %q", code, stdout, want)
	}
	code, stdout, _ = as(t, c, "admin").run("grep", "CUDA error of another", "-A")
	if code != 0 || !strings.HasPrefix(stdout, "etl/load-a.") || !strings.HasSuffix(stdout, ":log:1:CUDA error of another namespace\n") {
		t.Errorf("in all namespaces: %d %q", code, stdout)
	}
}

func TestGrepGroups(t *testing.T) {
	c, _ := failed(t)
	code, stdout, stderr := as(t, c, "eve").run("grep", "-g", "CUDA error|^end", "--files", "*.txt")
	lines := strings.Split(stdout, "\n")
	if code != 0 || stderr != "" || len(lines) != 9 || !strings.HasPrefix(lines[0], "3 volumes since 20") ||
		!strings.Contains(lines[0], "Z, 3 lines, the first in nightly-") || lines[1] != "    CUDA error: out of memory" ||
		!strings.HasPrefix(lines[2], "1 volume since 20") || lines[3] != "    end nightly-a" {
		t.Errorf("%d %s\n%s", code, stdout, stderr)
	}
}

func TestGrepInJSON(t *testing.T) {
	c, names := failed(t)
	code, stdout, _ := as(t, c, "eve").run("grep", "-o", "json", "CUDA error", "nightly-b")
	var match struct {
		Name, Namespace, Pod, Node, File, Text string
		Line                                   int
	}
	var last struct{ End api.GrepEnd }
	lines := strings.SplitAfter(strings.TrimSpace(stdout), "\n")
	if code != 0 || len(lines) != 2 {
		t.Fatalf("%d %q", code, stdout)
	}
	must(t, json.Unmarshal([]byte(lines[0]), &match), json.Unmarshal([]byte(lines[1]), &last))
	if match.Name != names[1] || match.Pod != "nightly-b" || match.Namespace != "ci" || match.Node != "n1" || match.Line != 2 ||
		match.Text != "CUDA error: out of memory" || match.File != "out/log.txt" || last.End.Binary != 1 {
		t.Errorf("%s", stdout)
	}
}

// TestGrepExits as grep does, and says what was not searched.
func TestGrepExits(t *testing.T) {
	c, names := failed(t)
	eve := as(t, c, "eve")
	eve.wantFailure(1, []string{"nothing was found in 6 files of 3 volumes", "Not searched: 3 files that are no text"}, "grep", "no such line")
	eve.wantFailure(2, []string{"regular expression"}, "grep", "(")
	eve.wantFailure(2, []string{"too large"}, "grep", "(?:abcdefghij){1000}")
	eve.wantFailure(2, []string{"whole volumes"}, "grep", "x", names[0]+":out")
	eve.wantFailure(2, []string{"only one is possible"}, "grep", "-c", "-l", "x")
	eve.wantFailure(2, []string{"not a duration"}, "grep", "x", "--since", "yesterday")
	eve.wantFailure(2, []string{"in all namespaces"}, "grep", "x", "-A")
	as(t, c, "vic").wantFailure(2, []string{"not read their files"}, "grep", "x")
	as(t, c, "bob").wantFailure(2, []string{"namespace ci"}, "grep", "x", "-n", "ci")
	c.Lost("n2")
	eve.wantFailure(2, []string{"nothing was found in what was searched", "1 of 2 nodes (n2: NotConnected)"}, "grep", "no such line")
	code, stdout, stderr := eve.run("grep", "-l", "CUDA")
	if code != 0 || strings.Count(stdout, "\n") != 2 || !strings.Contains(stderr, "1 of 2 nodes") {
		t.Errorf("code %d, %q, %q", code, stdout, stderr)
	}
	c.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		search := strings.HasSuffix(r.URL.Path, "/log")
		if search {
			api.WriteError(w, api.NewError(api.BadRequest, "there is no parameter %q; there are path, offset", "grep"))
		}
		return search
	})
	eve.wantFailure(2, []string{"of an older version", "upgrade it"}, "grep", "x")
	// What is in the archive is searched if that is asked for, and counted else.
	c.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		search := strings.HasSuffix(r.URL.Path, "/log")
		switch {
		case search && r.URL.Query().Get("archived") == "true":
			api.WriteError(w, api.NewError(api.BadRequest, "there is no parameter %q; there are grep, tell", "archived"))
		case search:
			_, _ = w.Write([]byte(`{"end":{"volumes":3,"files":6,"bytes":0,"lines":0,"archived":12}}` + "\n"))
		}
		return search
	})
	eve.wantFailure(1, []string{"nothing was found in 6 files", "; not searched: 12 archived volumes: see --archived"}, "grep", "x")
	eve.wantFailure(1, []string{"not searched: 12 archived volumes of job/nightly: see --archived"}, "grep", "x", "job/nightly")
	eve.wantFailure(2, []string{"of an older version, which does not search the archive"}, "grep", "x", "--archived")
	// What was not searched of it is said.
	for end, want := range map[string]struct {
		code int
		said string
	}{
		`"nodes":3,"missing":[{"node":"the archive","reason":"Failed"}]`: {2, "Not searched: the archive (Failed)\n"},
		`"archivedMore":true`: {1, "not searched: archived volumes, it is not known how many: see --archived"},
		`"stopped":{"bytes":1},"archiveStopped":"bytes"`: {2, "Not searched: the archive, where the most of bytes was reached, and the " +
			"volumes of each namespace that were retained first are left\n"},
		`"stopped":{"bytes":2},"archiveStopped":"bytes"`: {2, "; 1 node where the most of bytes was reached, where the volumes that " +
			"were retained first are left\n"},
	} {
		c.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
			search := strings.HasSuffix(r.URL.Path, "/log")
			if search {
				fmt.Fprintf(w, `{"end":{"volumes":3,"files":6,"bytes":0,"lines":0,%s}}`+"\n", end)
			}
			return search
		})
		eve.wantFailure(want.code, []string{want.said}, "grep", "x")
	}
	c.Intercept(nil)
	c.Uninstall()
	eve.wantFailure(2, []string{"no APIService"}, "grep", "x")
}

// TestGrepOfLogs: what containers printed is searched without what their runtime adds, compressed or not.
func TestGrepOfLogs(t *testing.T) {
	code, stdout, _ := as(t, trained(t), "eve").run("grep", "^(alone|one|three|.*four)$", "--files", "main/*")
	for _, part := range []string{":main/0.log:1:alone\n", ":main/1.log.20261130-120015.gz:1:one\n", ":main/1.log.20261130-120025:1:three\n",
		":main/1.log:1:four\n"} {
		if code != 0 || !strings.Contains(stdout, part) {
			t.Errorf("code %d, %q lacks %q", code, stdout, part)
		}
	}
}
