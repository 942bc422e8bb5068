package archived

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/gateway/bucket"
	"github.com/katbox/katbox/internal/gateway/fleet"
	"github.com/katbox/katbox/internal/lib/grep"
	"github.com/katbox/katbox/internal/lib/shares"
	"github.com/katbox/katbox/internal/model/api"
	form "github.com/katbox/katbox/internal/model/archived"
	"github.com/katbox/katbox/internal/model/volume"
)

// looking begins a search.
func (s *stage) looking(g api.Grep, tick func() error) fleet.VolumeSearch {
	s.Helper()
	if g.Tell == "" {
		g.Tell = api.TellLines
	}
	search, err := s.Search(fleet.Reader{User: "alice"}, g, tick)
	must(s, err)
	return search
}

func never() error { return nil }

// finds searches a volume.
func (s *stage) finds(search fleet.VolumeSearch, v api.Volume) (found []string, err error) {
	s.Helper()
	err = search.Volume(s.Context(), v, func(f api.GrepFound) error {
		found = append(found, fmt.Sprint(f.File, ":", f.Line, ":", f.Text))
		return nil
	})
	slices.Sort(found)
	return found, err
}

// ruins are a volume with all that a search can meet.
func ruins(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "log.txt", "one\nCUDA error\nthree")
	write(t, dir, "empty", "")
	write(t, dir, "caf\xe9", "CUDA \xff\n")
	write(t, dir, "a/large.log", strings.Repeat(strings.Repeat("x", 99)+"\n", 1+form.PieceSize/100)+"CUDA late\n")
	write(t, dir, "binary", "CUDA first\n\x00CUDA")
	must(t, os.Link(filepath.Join(dir, "log.txt"), filepath.Join(dir, "z.first")))
	must(t, os.Link(filepath.Join(dir, "log.txt"), filepath.Join(dir, "z.second")))
	must(t, os.Symlink("log.txt", filepath.Join(dir, "link")))
	must(t, unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	sparse, err := os.Create(filepath.Join(dir, "sparse"))
	must(t, err)
	defer sparse.Close()
	must(t, sparse.Truncate(1<<40))
	return dir
}

func TestSearch(t *testing.T) {
	s := newStage(t)
	v := s.archive(ruins(t), shown(alpha, 1))
	for name, test := range map[string]struct {
		grep api.Grep
		want []string
	}{
		"lines": {api.Grep{Pattern: "CUDA [el\\x{fffd}]"}, []string{
			"a/large.log:83888:CUDA late", "any name:2:CUDA error", "caf%E9:1:CUDA \ufffd"}},
		"a file in another piece alone": {api.Grep{Pattern: "late", Files: "a/*"}, []string{"a/large.log:83888:CUDA late"}},
		"by a further name":             {api.Grep{Pattern: "CUDA", Files: "z.*"}, []string{"z.first or second:2:CUDA error"}},
		"by the first name":             {api.Grep{Pattern: "CUDA", Files: "l*.txt"}, []string{"log.txt:2:CUDA error"}},
		"files":                         {api.Grep{Pattern: "cuda error", IgnoreCase: true, Tell: api.TellFiles}, []string{"any name:0:"}},
	} {
		search := s.looking(test.grep, never)
		found, err := s.finds(search, v)
		sums := search.Sums()
		// Which of the names comes first is the file system's.
		alike := map[string]string{"z.*": "z.first or second", "": "any name"}[test.grep.Files]
		for i, line := range found {
			if name, rest, _ := strings.Cut(line, ":"); alike != "" && (name == "log.txt" || strings.HasPrefix(name, "z.")) {
				found[i] = alike + ":" + rest
			}
		}
		slices.Sort(found)
		if err != nil || !slices.Equal(found, test.want) || sums.Volumes != 1 || sums.Unreadable > 0 {
			t.Errorf("%s: found %q, %v, %+v", name, found, err, sums)
		}
	}
	search := s.looking(api.Grep{Pattern: "nothing"}, never)
	if _, err := s.finds(search, v); err != nil || search.Sums().Binary != 2 || search.Sums().Bytes > form.PieceSize+1<<20 {
		t.Errorf("%v, %+v", err, search.Sums())
	}
}

// TestSearchOfLogs: what containers printed is searched without what the runtime adds, also where that is compressed.
func TestSearchOfLogs(t *testing.T) {
	s := newStage(t)
	dir := t.TempDir()
	write(t, dir, "main/0.log", "2026-11-01T12:00:00.5Z stdout P CUDA \n2026-11-01T12:00:00.6Z stdout F error\n")
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write([]byte("2026-11-01T11:00:00Z stderr F CUDA earlier\n"))
	must(t, err)
	must(t, w.Close())
	write(t, dir, "main/0.log.20261101-113000.gz", packed.String())
	v := shown(alpha, 1)
	v.Volume, v.ID = volume.LogsName, string(volume.KubeletID(volume.PodUID(v.PodUID), volume.LogsName))
	v = s.archive(dir, v)
	found, err := s.finds(s.looking(api.Grep{Pattern: "^CUDA e"}, never), v)
	want := []string{"main/0.log.20261101-113000.gz:1:CUDA earlier", "main/0.log:1:CUDA error"}
	slices.Sort(want)
	if err != nil || !slices.Equal(found, want) {
		t.Errorf("found %q, %v", found, err)
	}
}

// TestSearchThatFails: what ends one volume is counted, and what ends the search is its error.
func TestSearchThatFails(t *testing.T) {
	s := newStage(t)
	v := s.archive(ruins(t), shown(alpha, 1))
	up := (*grep.UsedUpError)(nil)
	if _, err := s.finds(s.looking(api.Grep{Pattern: "late", MaxBytes: 1000}, never), v); !errors.As(err, &up) || up.Budget != api.StopBytes {
		t.Errorf("a budget: %v", err)
	}
	left := errors.New("left")
	if _, err := s.finds(s.looking(api.Grep{Pattern: "late"}, func() error { return left }), v); !errors.Is(err, left) {
		t.Errorf("a tick: %v", err)
	}
	leaves := func(api.GrepFound) error { return left }
	if err := s.looking(api.Grep{Pattern: "CUDA"}, never).Volume(t.Context(), v, leaves); !errors.Is(err, left) {
		t.Errorf("a reader that has left: %v", err)
	}
	broken := s.looking(api.Grep{Pattern: "CUDA"}, never)
	err := broken.Volume(t.Context(), v, func(api.GrepFound) error { panic("a bug") })
	if used := len(s.indexes.used); err != nil || broken.Sums().Broken != 1 || used > 0 {
		t.Errorf("a bug: %v, %+v, %d readers use indexes", err, broken.Sums(), used)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(left)
	if err := s.looking(api.Grep{Pattern: "CUDA"}, never).Volume(ctx, v, nil); !errors.Is(err, left) {
		t.Errorf("the end of the context: %v", err)
	}
	if _, err := s.Search(fleet.Reader{}, api.Grep{Pattern: "("}, never); err == nil {
		t.Error("a pattern that is none")
	}
	for what, change := range map[string]func(*stage, api.Volume){
		"its pieces are gone": func(s *stage, v api.Volume) {
			for _, key := range s.store.Keys(cluster + "/" + alpha + "/p/") {
				s.store.Remove(key)
			}
		},
		"its index is none": func(s *stage, v api.Volume) { s.store.Put(v.Archived, []byte("no index")) },
		"it is gone":        func(s *stage, v api.Volume) { s.store.Remove(v.Archived) },
	} {
		s := newStage(t)
		v := s.archive(ruins(t), shown(alpha, 1))
		change(s, v)
		search := s.looking(api.Grep{Pattern: "CUDA"}, never)
		found, err := s.finds(search, v)
		sums := search.Sums()
		if err != nil || len(found) > 0 || sums.Unreadable > 0 == (what == "it is gone") || sums.Broken > 0 != (what == "its index is none") ||
			sums.Lost > 0 != (what == "it is gone") {
			t.Errorf("%s: found %q, %v, %+v", what, found, err, sums)
		}
	}
	s.store.Fail(func(string, string) int { return http.StatusServiceUnavailable })
	if _, err := s.finds(s.looking(api.Grep{Pattern: "CUDA"}, never), v); !errors.Is(err, bucket.ErrAway) {
		t.Errorf("the bucket is away: %v", err)
	}
}

// TestSearchTakesTurns: other readers come between two volumes.
func TestSearchTakesTurns(t *testing.T) {
	s := newStage(t)
	v := s.archive(ruins(t), shown(alpha, 1))
	search := s.looking(api.Grep{Pattern: "CUDA"}, never)
	taken := 0
	must(t, search.Volume(t.Context(), v, func(api.GrepFound) error {
		taken, _ = s.streaming.Taken("alice")
		return nil
	}))
	if all, _ := s.streaming.Taken("alice"); taken != 1 || all != 0 {
		t.Errorf("it has %d turns, and %d afterwards", taken, all)
	}
}

// TestSearchWhileTheBucketGoesAway: the first piece that cannot be read for that ends the search, and not each file for itself.
func TestSearchWhileTheBucketGoesAway(t *testing.T) {
	s := newStage(t)
	dir := t.TempDir()
	for i := range 20 {
		write(t, dir, fmt.Sprint("log", i), "CUDA error\n")
	}
	v := s.archive(dir, shown(alpha, 1))
	asked := 0
	s.store.Fail(func(_, key string) int {
		if !strings.Contains(key, "/p/") {
			return 0
		}
		asked++
		return http.StatusServiceUnavailable
	})
	search := s.looking(api.Grep{Pattern: "CUDA"}, never)
	found, err := s.finds(search, v)
	if !errors.Is(err, bucket.ErrAway) || len(found) > 0 || search.Sums().Files != 1 {
		t.Errorf("found %q, %v, %+v, the bucket was asked %d times", found, err, search.Sums(), asked)
	}
}

// TestSearchThatLeavesOutMost: what is read of pieces counts, though the pattern sees a little of it.
func TestSearchThatLeavesOutMost(t *testing.T) {
	s := newStage(t)
	dir := t.TempDir()
	for _, name := range []string{"a", "c"} {
		write(t, dir, name+"1.log", "CUDA error\n")
		write(t, dir, name+"2.bin", string(random(1<<20))+strings.Repeat("x", form.PieceSize-1<<20))
	}
	v := s.archive(dir, shown(alpha, 1))
	up := (*grep.UsedUpError)(nil)
	search := s.looking(api.Grep{Pattern: "CUDA", Files: "*.log", MaxBytes: 1 << 20}, never)
	if found, err := s.finds(search, v); !errors.As(err, &up) || up.Budget != api.StopBytes || search.Sums().Bytes > 100 {
		t.Errorf("found %q, %v, %+v", found, err, search.Sums())
	}
}

// TestSearchWaitsForRoom: while the reader's other requests use the memory that it may, volumes with large indexes are not left out.
func TestSearchWaitsForRoom(t *testing.T) {
	s := newStage(t)
	v := s.archive(ruins(t), shown(alpha, 1))
	s.indexes = newObjects(mostIndexBytes, 1)
	s.indexes.patience = time.Millisecond
	of, _ := shares.Reader("alice")
	_, release, err := s.indexes.get(t.Context(), of, "another", 1, func(context.Context) ([]byte, error) { return []byte("x"), nil })
	must(t, err)
	time.AfterFunc(10*time.Millisecond, release)
	search := s.looking(api.Grep{Pattern: "CUDA late"}, never)
	if found, err := s.finds(search, v); err != nil || len(found) != 1 || search.Sums().Volumes != 1 {
		t.Errorf("found %q, %v, %+v", found, err, search.Sums())
	}
}
