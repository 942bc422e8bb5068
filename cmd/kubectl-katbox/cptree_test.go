package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/katbox/katbox/internal/testing/clustertest"
	"github.com/katbox/katbox/internal/testing/verbstest"
)

// tree is a volume with a directory of several files, and what the API server is asked for its bytes.
type tree struct {
	cluster *clustertest.Cluster
	eve     user
	name    string
	dir     string
	// failing refuses requests that go on with a stream.
	failing atomic.Bool
	asked   atomic.Pointer[http.Header]
}

func newTree(t *testing.T) *tree {
	t.Helper()
	c := clustertest.New(t)
	x := &tree{cluster: c, eve: as(t, c, "eve")}
	x.name, x.dir = c.Node("n1").Put(1, "ci", "nightly", "nightly-x7k2p")
	for i := range 6 {
		write(t, fmt.Sprintf("%s/out/%d/log", x.dir, i), x.content(i))
	}
	c.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/log") {
			return false
		}
		header := r.Header.Clone()
		x.asked.Store(&header)
		if x.failing.Load() && header.Get("Range") != "" {
			http.Error(w, "no luck", http.StatusInternalServerError)
			return true
		}
		return false
	})
	return x
}

func (x *tree) content(i int) string { return fmt.Sprintln(i) + verbstest.Numbers(5_000) }

// cut lets a copy break off in the middle of the third file.
func (x *tree) cut(t *testing.T, want string, args ...string) {
	t.Helper()
	x.failing.Store(true)
	x.cluster.Cut(62_000)
	code, stdout, stderr := x.eve.run(args...)
	x.failing.Store(false)
	if code != 1 || stdout != "" || !strings.Contains(stderr, want) {
		t.Errorf("code %d, %q, %q, want %q", code, stdout, stderr, want)
	}
}

// wantWhole wants that a directory is complete, and nothing is beside it.
func (x *tree) wantWhole(t *testing.T, above, dir string) {
	t.Helper()
	var names []string
	for i := range 6 {
		name := fmt.Sprintf("%s/out/%d/log", dir, i)
		names = append(names, name)
		verbstest.WantFile(t, above+"/"+name, x.content(i))
	}
	verbstest.WantNames(t, above, names...)
}

// from returns from which byte on the last stream was asked for; empty for all.
func (x *tree) from(t *testing.T) string {
	t.Helper()
	header := *x.asked.Load()
	if (header.Get("Range") == "") != (header.Get("If-Range") == "") {
		t.Errorf("asked with %v", header)
	}
	return header.Get("Range")
}

// TestACutCopyOfADirectoryGoesOnInTheNextRun (T45): behind the last file that is complete.
func TestACutCopyOfADirectoryGoesOnInTheNextRun(t *testing.T) {
	for what, args := range map[string][]string{"volume": {"nightly-x7k2p", "/files"}, "Job": {"job/nightly", ""}} {
		t.Run(what, func(t *testing.T) {
			x, above := newTree(t), t.TempDir()
			dest, dir := above+args[1], "files"
			if what == "Job" {
				dir = "nightly-x7k2p/scratch"
			}
			x.cut(t, dir+`.partial" holds what was in the first`, "cp", args[0], dest)
			if files, err := os.ReadDir(above + "/" + dir + ".partial/out"); err != nil || len(files) != 3 {
				t.Errorf("%v, %v, want two directories that are complete and one that is not", files, err)
			}
			code, _, stderr := x.eve.run("cp", args[0], dest)
			if code != 0 || !strings.Contains(stderr, "going on after") || x.from(t) == "" {
				t.Errorf("code %d, %s, asked from %q", code, stderr, x.from(t))
			}
			x.wantWhole(t, above, dir)
		})
	}
}

// TestACutCopyOfADirectoryBeginsAnew where its beginning is not that of the same contents, or not known.
func TestACutCopyOfADirectoryBeginsAnew(t *testing.T) {
	for what, row := range map[string]struct {
		flag  string
		state func(path string) error
	}{
		"another archive": {flag: "--exclude=*.tmp"},
		"with links":      {flag: "--symlinks=keep"},
		"a cut line":      {state: func(path string) error { return os.Truncate(path, 5) }},
		"a file elsewhere": {state: func(path string) error {
			text, err := os.ReadFile(path)
			text = regexp.MustCompile(`"partial":"[^"]*"`).ReplaceAll(text, []byte(`"partial":"../out/0/log"`))
			return errors.Join(err, os.WriteFile(path, text, 0o600))
		}},
		"no sense": {state: func(path string) error { return os.WriteFile(path, []byte("\"x\"\n-5\nskip"), 0o600) }},
	} {
		t.Run(what, func(t *testing.T) {
			x, above := newTree(t), t.TempDir()
			x.cut(t, "repeat the command", "cp", x.name, above+"/files")
			if row.state != nil {
				must(t, row.state(above+"/files.partial.etag"))
			}
			write(t, above+"/files.partial/junk", "left over")
			code, stdout, stderr := x.eve.run(strings.Fields("cp " + x.name + " " + above + "/files " + row.flag)...)
			if code != 0 || stdout != "" || !strings.Contains(stderr, "beginning anew\n") {
				t.Errorf("code %d, %q, %q", code, stdout, stderr)
			}
			x.wantWhole(t, above, "files")
		})
	}
}

// TestACopyTakesNothingForItsBeginning that another program has made, or that is gone.
func TestACopyTakesNothingForItsBeginning(t *testing.T) {
	x, above := newTree(t), t.TempDir()
	write(t, above+"/files.partial/precious", "precious")
	x.eve.wantFailure(1, []string{"is not the beginning of a copy: remove it"}, "cp", x.name, above+"/files")
	verbstest.WantNames(t, above, "files.partial/precious")
	must(t, os.RemoveAll(above+"/files.partial"))
	x.cut(t, "repeat the command", "cp", x.name, above+"/files")
	must(t, os.RemoveAll(above+"/files.partial"))
	x.eve.wantFailure(1, []string{"is gone: repeat the command to begin anew"}, "cp", x.name, above+"/files")
	x.eve.wantOutput("", "cp", x.name, above+"/files")
	x.wantWhole(t, above, "files")
	// What does not begin leaves nothing.
	x.cluster.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/log") {
			http.Error(w, "no luck", http.StatusInternalServerError)
			return true
		}
		return false
	})
	x.eve.wantFailure(1, []string{"no luck"}, "cp", x.name, above+"/other")
	x.wantWhole(t, above, "files")
}
