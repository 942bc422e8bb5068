package verbs

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/testing/verbstest"
)

// damage makes what is between the node and the client pass other bytes of the next stream than it gets.
func (n *node) damage(other func([]byte) []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	damaged := false
	n.front = func(w http.ResponseWriter, r *http.Request) bool {
		if damaged || !strings.HasSuffix(r.URL.Path, "/bytes") {
			return false
		}
		damaged = true
		n.handler.ServeHTTP(&damaging{w, other}, r)
		return true
	}
}

type damaging struct {
	http.ResponseWriter
	other func([]byte) []byte
}

func (d *damaging) Unwrap() http.ResponseWriter { return d.ResponseWriter }

func (d *damaging) Write(p []byte) (int, error) {
	if _, err := d.ResponseWriter.Write(d.other(bytes.Clone(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// TestNothingGoesOnBehindADamagedArchive: what came is bad somewhere, so neither the verb itself nor the next run asks
// for what follows, which alone would be good.
func TestNothingGoesOnBehindADamagedArchive(t *testing.T) {
	content := verbstest.Numbers(20_000)
	for damage, other := range map[string]func([]byte) []byte{
		"another byte":   func(p []byte) []byte { return bytes.Replace(p, []byte("\n7777\n"), []byte("\n7177\n"), 1) },
		"missing bytes":  func(p []byte) []byte { return bytes.Replace(p, []byte("\n7777\n"), nil, 1) },
		"one byte again": func(p []byte) []byte { return bytes.Replace(p, []byte("\n7777\n"), []byte("\n77777\n"), 1) },
	} {
		t.Run(damage, func(t *testing.T) {
			n, above := newNode(t), t.TempDir()
			dir := n.add(1, "etl/nightly/scratch", time.Hour)
			write(t, dir+"/log", content)
			write(t, dir+"/next", content)
			whole := katbox(t, "cp", "etl/nightly", "-").stdout
			write(t, above+"/there/other", "")
			for what, args := range map[string][]string{
				"directory": {"cp", "etl/nightly", above + "/files"}, "existing directory": {"cp", "--overwrite", "etl/nightly", above + "/there"},
				"tar": {"cp", "--tar", "etl/nightly", above + "/files.tar"}, "standard output": {"cp", "etl/nightly", "-"},
			} {
				n.damage(other)
				r := katbox(t, args...)
				if r.code != verbs.CodeFailed || !strings.Contains(r.stderr, "repeat the command") || strings.Contains(r.stderr, "to go on") {
					t.Errorf("%s: code %d, %s", what, r.code, r.stderr)
				}
				if r := katbox(t, args...); r.code != 0 || what == "standard output" && r.stdout != whole {
					t.Errorf("%s, again: code %d, %s", what, r.code, r.stderr)
				}
			}
			for _, name := range []string{"/files/log", "/files/next", "/there/log", "/there/next"} {
				verbstest.WantFile(t, above+name, content)
			}
			verbstest.WantFile(t, above+"/files.tar", whole)
		})
	}
}
