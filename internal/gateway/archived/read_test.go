package archived

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/paths"
	"github.com/katbox/katbox/internal/model/api"
	form "github.com/katbox/katbox/internal/model/archived"
	"github.com/katbox/katbox/internal/node/files"
	"github.com/katbox/katbox/internal/node/tarball"
)

// random returns bytes that do not compress.
func random(n int) []byte {
	b := make([]byte, n)
	source := rand.NewChaCha8([32]byte{1})
	_, _ = source.Read(b)
	return b
}

// evidence makes a volume with everything that one can have.
func evidence(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "log.txt", "one\ntwo\nthree\n")
	write(t, dir, "empty", "")
	write(t, dir, "a/b/c/deep", "deep down")
	write(t, dir, "a/b-c", "beside b")
	write(t, dir, "a/caf\xe9", "not UTF-8")
	write(t, dir, "a/"+strings.Repeat("long", 40), "a long name")
	write(t, dir, "large", string(random(2*form.PieceSize+12345)))
	must(t, os.Link(filepath.Join(dir, "log.txt"), filepath.Join(dir, "a/b/linked")))
	must(t, os.Link(filepath.Join(dir, "log.txt"), filepath.Join(dir, "a/b/linked too")))
	must(t, os.Symlink("../log.txt", filepath.Join(dir, "a/link")))
	must(t, unix.Mkfifo(filepath.Join(dir, "a/fifo"), 0o600))
	sparse, err := os.Create(filepath.Join(dir, "a/sparse"))
	must(t, err)
	defer sparse.Close()
	for _, at := range []int64{0, 1 << 20, 9 << 20} {
		_, err := sparse.WriteAt([]byte("data at "+fmt.Sprint(at)), at)
		must(t, err)
	}
	must(t, sparse.Truncate(12<<20))
	must(t, os.MkdirAll(filepath.Join(dir, "z/nothing"), 0o700))
	for i := range 30 {
		write(t, dir, fmt.Sprintf("z/many/%02d.log", i), strings.Repeat("line\n", i))
	}
	must(t, os.Chtimes(filepath.Join(dir, "log.txt"), epoch, epoch.Add(123456789)))
	return dir
}

// readTar reads a tar through the client that the gateway has.
func readTar(t testing.TB, c *api.Client, v api.Volume, q api.BytesQuery) ([]byte, error) {
	t.Helper()
	q.Archive = true
	stream, err := c.Bytes(t.Context(), v.ID, q)
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	return io.ReadAll(stream)
}

// TestTarsAreTheNodes: byte by byte, of the whole, of a directory and of a file, with patterns, and from any byte on.
func TestTarsAreTheNodes(t *testing.T) {
	s := newStage(t)
	dir := evidence(t)
	v := s.archive(dir, shown(alpha, 1))
	c := s.Client(v)
	for name, tt := range map[string]struct {
		path    string
		exclude []string
	}{
		"whole": {}, "directory": {path: "a"}, "with links to elsewhere": {path: "a/b"}, "deeper": {path: "a/b/c"}, "file": {path: "log.txt"},
		"hard link": {path: "a/b/linked"}, "sparse": {path: "a/sparse"}, "empty directory": {path: "z/nothing"},
		"patterns":                         {exclude: []string{"*.log", "!/z/many/07.log", "/a/b", "nothing/"}},
		"the file of links is excluded":    {exclude: []string{"/log.txt", "large"}},
		"one of the links and the file is": {path: "a", exclude: []string{"/b/linked"}},
	} {
		t.Run(name, func(t *testing.T) {
			path, err := paths.New(tt.path)
			must(t, err)
			want := tarOf(t, dir, tarball.Options{Path: path, Exclude: tt.exclude})
			got, err := readTar(t, c, v, api.BytesQuery{Path: path.Ref(), Exclude: tt.exclude})
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%d bytes, %v; the node's has %d; they differ at %d", len(got), err, len(want), differ(got, want))
			}
			for range 4 {
				from := rand.IntN(len(want))
				got, err := readTar(t, c, v, api.BytesQuery{Path: path.Ref(), Exclude: tt.exclude, From: int64(from)})
				if err != nil || !bytes.Equal(got, want[from:]) {
					t.Fatalf("from %d: %d bytes, %v; they differ at %d", from, len(got), err, differ(got, want[from:]))
				}
			}
		})
	}
	if _, err := readTar(t, c, v, api.BytesQuery{MaxBytes: 1 << 20}); cause(err) != api.BadParameter {
		// A tar that is too large breaks off; before its first byte it is an error.
		if !errors.Is(err, api.ErrCut) {
			t.Errorf("larger than allowed: %v", err)
		}
	}
	for path, want := range map[string]api.CauseReason{"a/link": api.IsSymlink, "a/fifo": api.NotRegularFile} {
		if _, err := readTar(t, c, v, api.BytesQuery{Path: path}); cause(err) != want {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := readTar(t, c, v, api.BytesQuery{Exclude: []string{"["}}); cause(err) != api.BadParameter {
		t.Errorf("a bad pattern: %v", err)
	}
}

func differ(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

func cause(err error) api.CauseReason {
	if e := (*api.Error)(nil); errors.As(err, &e) {
		return e.Cause()
	}
	return ""
}

// TestFilesAreTheNodes: all parts of all files, also across pieces and holes.
func TestFilesAreTheNodes(t *testing.T) {
	s := newStage(t)
	dir := evidence(t)
	v := s.archive(dir, shown(alpha, 1))
	c := s.Client(v)
	read := func(q api.BytesQuery) (string, *api.Stream) {
		t.Helper()
		stream, err := c.Bytes(t.Context(), v.ID, q)
		must(t, err)
		defer stream.Close()
		text, err := io.ReadAll(stream)
		must(t, err)
		return string(text), stream
	}
	for _, name := range []string{"log.txt", "empty", "a/b/c/deep", "a/caf%E9", "large", "a/b/linked", "a/sparse"} {
		path, err := paths.ParseRef(name)
		must(t, err)
		content, err := os.ReadFile(filepath.Join(dir, path.String()))
		must(t, err)
		if got, stream := read(api.BytesQuery{Path: name}); got != string(content) || stream.Size != int64(len(content)) {
			t.Errorf("%s: %d of %d bytes, they differ at %d", name, len(got), len(content), differ([]byte(got), content))
		}
		for range 5 {
			offset, limit := rand.IntN(len(content)+1), 1+rand.IntN(len(content)+1)
			want := string(content[offset:min(len(content), offset+limit)])
			if got, _ := read(api.BytesQuery{Path: name, Offset: int64(offset), Limit: int64(limit)}); got != want {
				t.Errorf("%s from %d, %d bytes: they differ at %d", name, offset, limit, differ([]byte(got), []byte(want)))
			}
		}
	}
	got, last := read(api.BytesQuery{Path: "log.txt", TailLines: 2})
	if got != "two\nthree\n" || last.ContentType != "text/plain; charset=utf-8" {
		t.Errorf("%q, %+v", got, last)
	}
	if got, _ := read(api.BytesQuery{Path: "log.txt", TailBytes: 3}); got != "ee\n" {
		t.Errorf("%q", got)
	}
	_, first := read(api.BytesQuery{Path: "log.txt"})
	if got, stream := read(api.BytesQuery{Path: "log.txt", From: 4, ETag: first.ETag}); got != "two\nthree\n" || stream.Offset != 4 {
		t.Errorf("resumed: %q at %d", got, stream.Offset)
	}
	for path, want := range map[string]api.CauseReason{
		"a": api.IsDirectory, "a/link": api.IsSymlink, "a/fifo": api.NotRegularFile, "a/link/x": api.IsSymlink, "log.txt/x": api.NotDirectory,
		"../x": api.BadPath, "a//b": api.BadPath,
	} {
		if _, err := c.Bytes(t.Context(), v.ID, api.BytesQuery{Path: path}); cause(err) != want {
			t.Errorf("%s: %v", path, err)
		}
	}
	for path, want := range map[string]int{"none": http.StatusNotFound, "a/none": http.StatusNotFound} {
		if _, err := c.Bytes(t.Context(), v.ID, api.BytesQuery{Path: path}); code(err) != want {
			t.Errorf("%s: %v", path, err)
		}
	}
	_, err := c.Bytes(t.Context(), v.ID, api.BytesQuery{Path: "log.txt", Offset: 1000})
	if code(err) != http.StatusRequestedRangeNotSatisfiable {
		t.Errorf("behind the end: %v", err)
	}
}

func code(err error) int {
	if e := (*api.Error)(nil); errors.As(err, &e) {
		return e.Code
	}
	return 0
}

// TestListsAreTheNodes: names, in their order, page after page, and what is said of each.
func TestListsAreTheNodes(t *testing.T) {
	s := newStage(t)
	dir := evidence(t)
	v := s.archive(dir, shown(alpha, 1))
	c := s.Client(v)
	tree := reading(t, dir).Tree
	for _, path := range []string{"", "a", "a/b", "z", "z/many", "z/nothing"} {
		for _, depth := range []int{1, 2, 3, 16} {
			for _, limit := range []int{1, 2, 7, 1000} {
				p, err := paths.New(path)
				must(t, err)
				var want []string
				page, err := tree.List(t.Context(), p, files.ListOptions{Limit: 10_000, Depth: depth}, nil)
				must(t, err)
				for _, e := range page.Entries {
					want = append(want, fmt.Sprint(e.Path.Ref(), e.Type, e.Size, e.Mode, e.UID, e.ModTime.UnixNano(), e.Target, e.Links, e.Allocated))
				}
				var got []string
				truncated := false
				for q := (api.FilesQuery{Path: path, Depth: depth, Limit: limit}); ; {
					list, err := c.Files(t.Context(), v.ID, q)
					must(t, err)
					truncated = truncated || list.Truncated
					for _, e := range list.Entries {
						var mode uint32
						_, _ = fmt.Sscanf(e.Mode, "%o", &mode)
						got = append(got, fmt.Sprint(e.Ref, e.Type, e.Size, mode, e.UID, e.ModTime.UnixNano(), e.Target, e.Links, e.Allocated))
					}
					if q.Continue = list.Continue; q.Continue == "" || len(got) > 1000 {
						break
					}
				}
				if !slices.Equal(got, want) || truncated != page.Truncated {
					t.Errorf("%q, depth %d, %d at once, truncated %t:\n%q\nand on the node, truncated %t:\n%q",
						path, depth, limit, truncated, got, page.Truncated, want)
				}
			}
		}
	}
	list, err := c.Files(t.Context(), v.ID, api.FilesQuery{Path: "a/link", Stat: true})
	if err != nil || len(list.Entries) != 1 || list.Entries[0].Target != "../log.txt" {
		t.Errorf("%+v, %v", list, err)
	}
	if list, err = c.Files(t.Context(), v.ID, api.FilesQuery{Stat: true}); err != nil || list.Entries[0].Type != api.Directory {
		t.Errorf("the top: %+v, %v", list, err)
	}
	for path, want := range map[string]api.CauseReason{"log.txt": api.NotDirectory, "a/link": api.IsSymlink} {
		if _, err := c.Files(t.Context(), v.ID, api.FilesQuery{Path: path}); cause(err) != want {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := c.Files(t.Context(), v.ID, api.FilesQuery{Path: "none"}); code(err) != http.StatusNotFound {
		t.Errorf("%v", err)
	}
	if _, err := c.Files(t.Context(), v.ID, api.FilesQuery{Continue: "a;1"}); cause(err) != api.BadContinue {
		t.Errorf("%v", err)
	}
}

// TestWrongPieces: of a piece that is not what the index says no byte is shown.
func TestWrongPieces(t *testing.T) {
	s := newStage(t)
	dir := t.TempDir()
	write(t, dir, "secret", "the evidence\n")
	v := s.archive(dir, shown(alpha, 1))
	pieces := s.store.Keys(cluster + "/" + alpha + "/p/")
	if len(pieces) != 1 {
		t.Fatal(pieces)
	}
	good := s.store.Get(pieces[0])
	compressor, err := form.NewCompressor()
	must(t, err)
	bomb := compressor.Compress(nil, make([]byte, form.PieceSize))
	flipped := bytes.Clone(good)
	flipped[len(flipped)/2] ^= 1
	for name, content := range map[string][]byte{
		"another one": bomb, "a bit": flipped, "shorter": good[:len(good)-1], "longer": append(bytes.Clone(good), 0), "empty": {},
	} {
		s.pieces = newObjects(mostPieceBytes, mostPieceBytes)
		s.store.Put(pieces[0], content)
		if _, err := s.Client(v).Bytes(t.Context(), v.ID, api.BytesQuery{Path: "secret"}); code(err) != http.StatusInternalServerError {
			t.Errorf("%s: %v", name, err)
		}
		if tar, err := readTar(t, s.Client(v), v, api.BytesQuery{}); err == nil || bytes.Contains(tar, []byte("evidence")) {
			t.Errorf("%s, as a tar: %d bytes, %v", name, len(tar), err)
		}
	}
	s.pieces = newObjects(mostPieceBytes, mostPieceBytes)
	s.store.Remove(pieces[0])
	if _, err := s.Client(v).Bytes(t.Context(), v.ID, api.BytesQuery{Path: "secret"}); code(err) != http.StatusInternalServerError ||
		!strings.Contains(err.Error(), "not complete") {
		t.Errorf("a piece that is not there: %v", err)
	}
}

// TestBucketAwayWhileReading: the answer says so, and when to come back; what runs is cut, and does not look complete.
func TestBucketAwayWhileReading(t *testing.T) {
	s := newStage(t)
	dir := t.TempDir()
	write(t, dir, "large", string(random(2*form.PieceSize)))
	v := s.archive(dir, shown(alpha, 1))
	c := s.Client(v)
	stream, err := c.Bytes(t.Context(), v.ID, api.BytesQuery{Path: "large"})
	must(t, err)
	defer stream.Close()
	_, err = io.ReadFull(stream, make([]byte, 1<<20))
	must(t, err)
	s.store.Fail(func(string, string) int { return http.StatusServiceUnavailable })
	if n, err := io.Copy(io.Discard, stream); !errors.Is(err, api.ErrCut) {
		t.Errorf("%d bytes more, %v", n, err)
	}
	for what, ask := range map[string]func() error{
		"files": func() error { _, err := c.Files(t.Context(), v.ID, api.FilesQuery{}); return err },
		"bytes": func() error { _, err := c.Bytes(t.Context(), v.ID, api.BytesQuery{Path: "large"}); return err },
		"rm":    func() error { return c.Purge(t.Context(), v.ID, "") },
	} {
		err := ask()
		if e := (*api.Error)(nil); !errors.As(err, &e) || e.Code != http.StatusServiceUnavailable || e.RetryAfter != awayPause ||
			!strings.Contains(e.Message, "try again") {
			t.Errorf("%s: %v", what, err)
		}
	}
	s.store.Fail(nil)
	if got, err := readTar(t, c, v, api.BytesQuery{}); err != nil || len(got) < 2*form.PieceSize {
		t.Errorf("afterwards: %d bytes, %v", len(got), err)
	}
}

// TestDecisions: an archived volume is deleted, and neither pinned nor released.
func TestDecisions(t *testing.T) {
	s := newStage(t)
	v := s.put(shown(alpha, 1))
	c := s.Client(v)
	_, pin := c.Pin(t.Context(), v.ID, time.Now().Add(time.Hour), "why")
	_, unpin := c.Unpin(t.Context(), v.ID)
	_, release := c.Release(t.Context(), v.ID, "")
	for what, err := range map[string]error{"pin": pin, "unpin": unpin, "release": release} {
		if code(err) != http.StatusConflict || !strings.Contains(err.Error(), "archive") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if got, err := c.Volume(t.Context(), v.ID); err != nil || got.Phase != api.PhaseArchived {
		t.Errorf("%+v, %v", got, err)
	}
	must(t, c.Purge(t.Context(), v.ID, "no use"))
	if keys := s.store.Keys(cluster); len(keys) != 0 {
		t.Errorf("left: %q", keys)
	}
	if _, err := c.Files(t.Context(), v.ID, api.FilesQuery{}); code(err) != http.StatusGone {
		t.Errorf("afterwards: %v", err)
	}
}
