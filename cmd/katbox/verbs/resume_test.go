package verbs

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/sealed"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/verbstest"
)

// cut makes the node break the connections of the next streams. Each number is how many bytes of the
// body one of them sends before.
func (n *node) cut(after ...int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.front = func(w http.ResponseWriter, r *http.Request) bool {
		// A client has one stream at a time.
		if !strings.HasSuffix(r.URL.Path, "/bytes") || len(after) == 0 {
			return false
		}
		limit := after[0]
		after = after[1:]
		n.handler.ServeHTTP(verbstest.Cut(w, limit), r)
		return true
	}
}

// TestACutStreamGoesOn: the verb asks for the rest by itself.
func TestACutStreamGoesOn(t *testing.T) {
	n := newNode(t)
	content := verbstest.Numbers(200_000)
	write(t, n.add(1, "etl/nightly/scratch", time.Hour)+"/log", content)
	whole := katbox(t, "cp", "etl/nightly", "-").stdout
	for _, args := range [][]string{{"cat", "etl/nightly:log"}, {"cp", "etl/nightly:log", "-"}} {
		n.cut(1, 1000, 0, 300_000)
		mustPrint(t, content, args...)
	}
	for _, args := range [][]string{{"tail", "-n", "100000", "etl/nightly:log"}, {"tail", "-c", "500000", "etl/nightly:log"}} {
		end := katbox(t, args...).stdout
		n.cut(1, 0, 300_000)
		mustPrint(t, end, args...)
	}
	n.cut(1, 1000, 0, 300_000)
	mustPrint(t, whole, "cp", "etl/nightly", "-")
	dest := t.TempDir()
	n.cut(1, 1000, 0, 300_000)
	mustPrint(t, "", "cp", "etl/nightly", dest)
	verbstest.WantFile(t, dest+"/log", content)
	n.cut(1, 1000, 0, 300_000)
	mustPrint(t, "", "cp", "etl/nightly:log", dest+"/again")
	verbstest.WantFile(t, dest+"/again", content)
}

// TestAStreamGoesOnOnceTheDaemonIsBack: a daemon that starts, or has more readers than it can serve,
// is asked again; not for ever.
func TestAStreamGoesOnOnceTheDaemonIsBack(t *testing.T) {
	n := newNode(t)
	content := verbstest.Numbers(1000)
	write(t, n.add(1, "etl/nightly/scratch", time.Hour)+"/log", content)
	for _, code := range []int{http.StatusServiceUnavailable, http.StatusTooManyRequests} {
		n.cut(100)
		cutting, requests := n.front, 0
		n.front = func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasSuffix(r.URL.Path, "/bytes") {
				return false
			}
			if requests++; requests == 2 || requests == 3 {
				w.WriteHeader(code)
				return true
			}
			return cutting(w, r)
		}
		mustPrint(t, content, "cat", "etl/nightly:log")
		if requests != 4 {
			t.Errorf("%d requests, want 4", requests)
		}
	}
}

// TestAListGoesOnOnceTheDaemonIsBack: what is listed already is not for nothing.
func TestAListGoesOnOnceTheDaemonIsBack(t *testing.T) {
	n := newNode(t)
	dir := n.add(1, "etl/nightly/scratch", time.Hour)
	path := "d" + strings.Repeat("/d", 20)
	write(t, filepath.Join(dir, path, "bottom"), "")
	requests := 0
	n.front = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/files") || r.URL.Query().Has("stat") {
			return false
		}
		requests++
		if requests == 2 || requests == 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
		return false
	}
	r := katbox(t, "ls", "-R", "etl/nightly:")
	if r.code != 0 || strings.Count(r.stdout, "\n") != 22 || requests != 4 {
		t.Errorf("%d requests, %+v", requests, r)
	}
	requests = 1
	mustFail(t, verbs.CodeFailed, []string{"ls", "-R", "etl/nightly:"}, "503")
}

// TestContentsThatChangedAreNotMixed: a retained volume does not change, but nothing else shows that
// it is the same one.
func TestContentsThatChangedAreNotMixed(t *testing.T) {
	n := newNode(t)
	name := n.add(1, "etl/nightly/scratch", time.Hour) + "/log"
	write(t, name, verbstest.Numbers(1000))
	n.cut(100)
	cutting, requests := n.front, 0
	n.front = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/bytes") {
			if requests++; requests == 2 {
				write(t, name, strings.Repeat("other\n", 1000))
			}
		}
		return cutting(w, r)
	}
	r := katbox(t, "cat", "etl/nightly:log")
	if r.code != verbs.CodeFailed || r.stdout != verbstest.Numbers(1000)[:100] || !strings.Contains(r.stderr, "the contents changed") {
		t.Errorf("%+v", r)
	}
}

// goneAfter makes a pod use volume 1 again in the middle of the next stream. back becomes what the
// volume was.
func (n *node) goneAfter(bytes int, back *volume.Description) {
	n.cut(bytes)
	inner, first := n.front, true
	n.front = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/bytes") && first {
			first = false
			defer n.change(1, func(d *volume.Description) {
				*back = *d
				d.Record.Phase = volume.Published
			})
		}
		return inner(w, r)
	}
}

// TestABrokenCopyGoesOn: its beginning stays, and the next one asks for the rest only.
func TestABrokenCopyGoesOn(t *testing.T) {
	n := newNode(t)
	content := verbstest.Numbers(200_000)
	write(t, n.add(1, "etl/nightly/scratch", time.Hour)+"/log", content)
	dest := t.TempDir()
	var before volume.Description
	n.goneAfter(700_000, &before)
	mustFail(t, verbs.CodeFailed, []string{"cp", id(1) + ":log", dest}, "kubectl exec", "log.partial",
		"holds the first 684 KiB: to go on, repeat the command")
	verbstest.WantNames(t, dest, "log.partial", "log.partial.etag")
	verbstest.WantFile(t, dest+"/log.partial", content[:700_000])
	n.change(1, func(d *volume.Description) { *d = before })
	var asked http.Header
	n.front = func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/bytes") {
			asked = r.Header.Clone()
		}
		return false
	}
	r := katbox(t, "cp", id(1)+":log", dest)
	if r.code != 0 || !strings.Contains(r.stderr, "going on after 684 KiB") || asked.Get("Range") != "bytes=699999-" ||
		asked.Get("If-Range") == "" {
		t.Errorf("%+v, asked with %v", r, asked)
	}
	verbstest.WantNames(t, dest, "log")
	verbstest.WantFile(t, dest+"/log", content)
}

// TestABeginningOfAnotherFileIsNotUsed: the ETag tells.
func TestABeginningOfAnotherFileIsNotUsed(t *testing.T) {
	n := newNode(t)
	write(t, n.add(1, "etl/nightly/scratch", time.Hour)+"/log", "the right content")
	dest := t.TempDir()
	for _, etag := range []string{`"1-2-3"`, "", "no etag\n", strings.Repeat("x", 4096)} {
		write(t, dest+"/log.partial", "the wrong")
		write(t, dest+"/log.partial.etag", etag)
		if r := katbox(t, "cp", "--overwrite", "etl/nightly:log", dest); r.code != 0 {
			t.Errorf("%+v", r)
		}
		verbstest.WantNames(t, dest, "log")
		verbstest.WantFile(t, dest+"/log", "the right content")
	}
}

// TestAPartialFileOfAnotherProgramIsKept, unless --overwrite is given.
func TestAPartialFileOfAnotherProgramIsKept(t *testing.T) {
	n := newNode(t)
	write(t, n.add(1, "etl/nightly/scratch", time.Hour)+"/log", "x")
	dest := t.TempDir()
	write(t, dest+"/log.partial", "precious")
	mustFail(t, verbs.CodeFailed, []string{"cp", "etl/nightly:log", dest}, "log.partial\" exists already")
	verbstest.WantNames(t, dest, "log.partial")
	verbstest.WantFile(t, dest+"/log.partial", "precious")
	if r := katbox(t, "cp", "--overwrite", "etl/nightly:log", dest); r.code != 0 {
		t.Errorf("%+v", r)
	}
	verbstest.WantNames(t, dest, "log")
}

func TestTwoCopiesDoNotMix(t *testing.T) {
	n := newNode(t)
	write(t, n.add(1, "etl/nightly/scratch", time.Hour)+"/log", "x")
	dest := t.TempDir()
	other, err := os.Create(dest + "/log.partial")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := unix.Flock(int(other.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	mustFail(t, verbs.CodeFailed, []string{"cp", "etl/nightly:log", dest}, "another katbox cp writes")
}

func TestACutTarSaysHowToGoOn(t *testing.T) {
	n := newNode(t)
	write(t, n.add(1, "etl/nightly/scratch", time.Hour)+"/log", verbstest.Numbers(200_000))
	whole := katbox(t, "cp", "etl/nightly", "-").stdout
	var before volume.Description
	n.goneAfter(700_000+sealed.Size, &before) // as many bytes may be a seal, and are held back
	r := katbox(t, "cp", id(1), "-")
	if r.code != verbs.CodeFailed || !strings.Contains(r.stderr, "repeat the command with --from 700000") || r.stdout != whole[:700_000] {
		t.Errorf("exit code %d, %d bytes, %s", r.code, len(r.stdout), r.stderr)
	}
	n.change(1, func(d *volume.Description) { *d = before })
	n.front = nil
	mustPrint(t, whole[700_000:], "cp", "--from", "700000", id(1), "-")
	n.goneAfter(700_000, &before)
	dest := t.TempDir()
	mustFail(t, verbs.CodeFailed, []string{"cp", id(1), dest}, "repeat the command with --overwrite")
}
