package handlers

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/shares"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/files"
	"github.com/katbox/katbox/internal/testing/roottest/hostile"
)

// grep searches, and returns what was found as lines of text, and the end.
func (n *node) grep(q api.GrepQuery) (found []string, end api.GrepEnd, err error) {
	n.t.Helper()
	stream, err := n.client.Grep(n.t.Context(), q)
	if err != nil {
		return nil, end, err
	}
	defer stream.Close()
	in := ""
	for {
		r, err := stream.Next()
		switch {
		case err != nil:
			return found, end, err
		case r.Volume != nil:
			in = strings.TrimLeft(r.Volume.ID, "csi-0")
		case r.Found != nil:
			f, mark := r.Found, ":"
			if f.Context {
				mark = "-"
			}
			text := f.Text
			if f.Count > 0 {
				text = fmt.Sprint("count ", f.Count)
			}
			found = append(found, fmt.Sprintf("%s:%s:%d%s%s", in, f.File, f.Line, mark, text))
		case r.End != nil:
			return found, *r.End, nil
		}
	}
}

// wantFound searches for what has to be found.
func (n *node) wantFound(what string, q api.GrepQuery, want ...string) (end api.GrepEnd) {
	n.t.Helper()
	found, end, err := n.grep(q)
	if err != nil || !slices.Equal(found, want) {
		n.t.Errorf("%s: found %q, %v, want %q", what, found, err, want)
	}
	return end
}

func looksFor(pattern string) api.GrepQuery { return api.GrepQuery{Grep: api.Grep{Pattern: pattern}} }

func TestGrep(t *testing.T) {
	n := newNode(t)
	_, dir := n.add(1)
	must(t, os.MkdirAll(filepath.Join(dir, "out", "deep"), 0o755))
	write(t, filepath.Join(dir, "out", "log.txt"), "one\nCUDA error: 700\r\nthree\nfour\ncuda error\nsix")
	write(t, filepath.Join(dir, "out", "deep", "a\xffb"), "last line without an end: CUDA error")
	write(t, filepath.Join(dir, "out", "binary"), "CUDA error\n\x00")
	write(t, filepath.Join(dir, "empty"), "")
	must(t, os.Symlink("/etc/passwd", filepath.Join(dir, "passwd")))
	_, dir2 := n.add(2)
	write(t, filepath.Join(dir2, "log.txt"), "CUDA error \xff\x1b[31m\n")

	end := n.wantFound("all", looksFor("CUDA error"), "2:log.txt:1:CUDA error \ufffd\x1b[31m", "1:out/log.txt:2:CUDA error: 700",
		"1:out/deep/a%FFb:1:last line without an end: CUDA error")
	if want := (api.GrepSums{Volumes: 2, Files: 5, Lines: 3, Binary: 1, Bytes: end.Bytes}); fmt.Sprint(end.GrepSums) != fmt.Sprint(want) {
		t.Errorf("searched %+v, want %+v", end.GrepSums, want)
	}
	id := fmt.Sprintf("csi-%064x", 1)
	for what, test := range map[string]struct {
		q    api.GrepQuery
		want []string
	}{
		"either case": {api.GrepQuery{ID: id, Grep: api.Grep{Pattern: "cuda ERR", IgnoreCase: true, Files: "log.txt"}},
			[]string{"1:out/log.txt:2:CUDA error: 700", "1:out/log.txt:5:cuda error"}},
		"context": {api.GrepQuery{ID: id, Grep: api.Grep{Pattern: "^three$", Context: 1}},
			[]string{"1:out/log.txt:2-CUDA error: 700", "1:out/log.txt:3:three", "1:out/log.txt:4-four"}},
		"context that meets": {api.GrepQuery{ID: id, Grep: api.Grep{Pattern: "[tf][ho][ru]", Context: 1}},
			[]string{"1:out/log.txt:2-CUDA error: 700", "1:out/log.txt:3:three", "1:out/log.txt:4:four", "1:out/log.txt:5-cuda error"}},
		"count": {api.GrepQuery{ID: id, Grep: api.Grep{Pattern: "(?i)cuda", Tell: api.TellCount, Files: "out/*.txt"}},
			[]string{"1:out/log.txt:0:count 2"}},
		"files": {api.GrepQuery{ID: id, Grep: api.Grep{Pattern: ".", Tell: api.TellFiles, Files: "**/log.*"}},
			[]string{"1:out/log.txt:0:"}},
		"nothing":        {looksFor("no such line"), nil},
		"links":          {looksFor("root:"), nil},
		"of a namespace": {api.GrepQuery{Grep: api.Grep{Pattern: "CUDA"}, Query: api.Query{Namespace: "other"}}, nil},
	} {
		n.wantFound(what, test.q, test.want...)
	}
}

// TestGrepOfLogs: what containers printed is found as they printed it, compressed or not, in lines that the runtime has cut.
func TestGrepOfLogs(t *testing.T) {
	n := newNode(t)
	_, dir := n.add(1)
	n.volumes.mu.Lock()
	for id, v := range n.volumes.all {
		delete(n.volumes.all, id)
		v.Record.VolumeName, v.Record.ID = volume.LogsName, volume.LogsID(testPod)
		n.volumes.all[v.Record.ID] = v
		must(t, os.Rename(dir, n.volumes.dir.Path(v.Record.Place())))
		dir = n.volumes.dir.Path(v.Record.Place())
	}
	n.volumes.mu.Unlock()
	main := filepath.Join(dir, "main")
	must(t, os.Mkdir(main, 0o755))
	const stamp = "2026-11-30T03:10:00.5Z stderr "
	write(t, filepath.Join(main, "0.log"),
		stamp+"P CUDA er\n"+stamp+"F ror\n"+stamp+"F \x00 fine\n"+stamp+"F stderr F CUDA error 2\n")
	f, err := os.Create(filepath.Join(main, "0.log.20261130-030000.gz"))
	must(t, err)
	packed := gzip.NewWriter(f)
	_, err = io.WriteString(packed, stamp+"F CUDA error 3\n")
	must(t, err, packed.Close(), f.Close())
	write(t, filepath.Join(main, "1.log.20261130-030000.gz"), "this is not gzip")
	found, end, err := n.grep(looksFor("^(CUDA error|stderr F)"))
	must(t, err)
	slices.Sort(found)
	if len(found) != 3 || !strings.HasSuffix(found[0], "main/0.log.20261130-030000.gz:1:CUDA error 3") ||
		!strings.HasSuffix(found[1], "main/0.log:1:CUDA error") || !strings.HasSuffix(found[2], "main/0.log:3:stderr F CUDA error 2") {
		t.Errorf("found %q", found)
	}
	if end.Unreadable != 1 || end.Binary != 0 {
		t.Errorf("not searched: %+v", end.GrepSums)
	}
	stream, err := n.client.Grep(t.Context(), looksFor("CUDA"))
	must(t, err)
	defer stream.Close()
	for {
		r, err := stream.Next()
		must(t, err)
		if r.Found != nil {
			if at := r.Found.Time.UTC().Format(time.RFC3339Nano); at != "2026-11-30T03:10:00.5Z" {
				t.Errorf("printed at %s", at)
			}
			break
		}
	}
}

// TestGrepOfHostileFiles: nothing that a pod left holds a search up, or makes it hold more than a line.
func TestGrepOfHostileFiles(t *testing.T) {
	n := newNode(t)
	id, dir := n.add(1)
	sparse, err := os.Create(filepath.Join(dir, "sparse"))
	must(t, err, sparse.Truncate(1<<40), sparse.Close())
	write(t, filepath.Join(dir, "endless"), strings.Repeat("x", 3<<20)+"needle"+strings.Repeat("y", 1<<20))
	for _, name := range hostile.Names {
		write(t, filepath.Join(dir, name), "needle\n")
	}
	must(t, unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	found, end, err := n.grep(api.GrepQuery{ID: id, Grep: api.Grep{Pattern: "needle", Context: 2}})
	if err != nil || len(found) < len(hostile.Names)+1 {
		t.Errorf("found %d lines, %v", len(found), err)
	}
	if end.LongLines != 1 || end.Binary != 1 || end.Bytes > 8<<20 {
		t.Errorf("searched %+v", end.GrepSums)
	}
	for _, line := range found {
		if len(line) > api.MostGrepText+13_000 {
			t.Errorf("a line has %d bytes", len(line))
		}
	}
}

// TestGrepRefuses what cannot be searched for.
func TestGrepRefuses(t *testing.T) {
	n := newNode(t)
	id, _ := n.add(1)
	for what, query := range map[string]url.Values{
		"no pattern":     {},
		"a bad one":      {"grep": {"("}},
		"a long one":     {"grep": {strings.Repeat("a", 1025)}},
		"a large one":    {"grep": {"(?:abcdefghij){1000}"}},
		"one in another": {"grep": {"((((a{9}){9}){9})x{9,})"}},
		"of many groups": {"grep": {"(" + strings.Repeat("x{100}", 40) + ")"}},
		"two":            {"grep": {"a", "b"}},
		"files":          {"grep": {"a"}, "files": {strings.Repeat("*a", 20)}},
		"tell":           {"grep": {"a"}, "tell": {"all"}},
		"context":        {"grep": {"a"}, "context": {"21"}},
		"bytes":          {"grep": {"a"}, "maxBytes": {"0"}},
		"case":           {"grep": {"a"}, "ignoreCase": {"yes"}},
		"ID":             {"grep": {"a"}, "id": {"../x"}},
		"unknown":        {"grep": {"a"}, "limits": {"1"}},
	} {
		if answer, text := n.raw(http.MethodGet, api.GrepPath, query, nil); answer.StatusCode != 400 {
			t.Errorf("%s: %d %s", what, answer.StatusCode, text)
		}
	}
	_, _, err := n.grep(api.GrepQuery{ID: "csi-unknown", Grep: api.Grep{Pattern: "a"}})
	wantCode(t, "an unknown volume", err, 404)
	n.volumes.lose(id, fmt.Errorf("volume: %w", volume.ErrGone))
	if answer, _ := n.raw(http.MethodPost, api.GrepPath, nil, nil); answer.StatusCode != 405 {
		t.Errorf("POST: %d", answer.StatusCode)
	}
}

// TestGrepBudgets: what is not searched is said.
func TestGrepBudgets(t *testing.T) {
	n := newNode(t)
	for i := range 3 {
		_, dir := n.add(i + 1)
		write(t, filepath.Join(dir, "log"), strings.Repeat("a line\n", 1000))
	}
	_, end, err := n.grep(api.GrepQuery{Grep: api.Grep{Pattern: "line", MaxBytes: 10_000}})
	if err != nil || end.Bytes != 10_000 || end.Volumes != 1 || end.Stopped[api.StopBytes] != 1 {
		t.Errorf("%+v, %v", end, err)
	}
	n.volumes.lose(fmt.Sprintf("csi-%064x", 2), fmt.Errorf("volume: %w", volume.ErrGone))
	_, end, err = n.grep(api.GrepQuery{Grep: api.Grep{Pattern: "line", Tell: api.TellFiles}})
	if err != nil || end.Volumes != 2 || end.Lost != 1 {
		t.Errorf("a lost one: %+v, %v", end, err)
	}
	_, dir := n.add(4)
	write(t, filepath.Join(dir, "log"), strings.Repeat("a line\n", api.MostGrepLines+1))
	if found, end, err := n.grep(looksFor("line")); err != nil || len(found) != api.MostGrepLines || end.Stopped[api.StopLines] != 1 {
		t.Errorf("many lines: %d, %+v, %v", len(found), end, err)
	}
}

// TestGrepEndsWithItsReader, whatever it does: it waits for its turn among calls, or for a pattern that takes many steps.
func TestGrepEndsWithItsReader(t *testing.T) {
	for what, test := range map[string]struct {
		pattern string
		paces   int
	}{
		"between files":         {"x", 2},
		"within a hostile line": {"(?:a?){300}(?:a{300})b", 12},
	} {
		t.Run(what, func(t *testing.T) {
			n := newNode(t)
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			paces := 0
			n.volumes.pace = func(ctx context.Context) error {
				if paces++; paces == test.paces {
					leave()
					<-ctx.Done()
				}
				return ctx.Err()
			}
			for i := range 4 {
				_, dir := n.add(i + 1)
				write(t, filepath.Join(dir, "log"), strings.Repeat("a", 1<<20))
			}
			stream, err := n.client.Grep(ctx, looksFor(test.pattern))
			if err == nil {
				defer stream.Close()
				for err == nil {
					_, err = stream.Next()
				}
			}
			if errors.Is(err, io.EOF) || ctx.Err() == nil {
				t.Errorf("it came to its end: %v", err)
			}
			n.volumes.wantAllClosed(t)
			eventually(t, "the slot is free", func() bool { all, _ := n.h.searches.Taken(""); return all == 0 })
		})
	}
}

// TestGrepOfALostVolume: a client that does not read keeps no file of it open.
func TestGrepOfALostVolume(t *testing.T) {
	n := newNode(t)
	id, dir := n.add(1)
	path := filepath.Join(dir, "large")
	write(t, path, strings.Repeat("0123456789abcdef\n", 1<<20))
	stream, err := n.client.Grep(t.Context(), looksFor("0"))
	must(t, err)
	defer stream.Close()
	eventually(t, "the file is open", func() bool { return opens(t, path) > 0 })
	n.volumes.lose(id, fmt.Errorf("volume: %w", volume.ErrNotRetained))
	eventually(t, "the file is closed", func() bool { return opens(t, path) == 0 && n.volumes.readings() == 0 })
}

// TestGrepSlots: one namespace does not get all of them.
func TestGrepSlots(t *testing.T) {
	n := newNode(t, func(h *handler) { h.stall = 24 * time.Hour })
	hold := make(chan struct{})
	n.volumes.pace = files.Pace(func(ctx context.Context) error {
		select {
		case <-hold:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	n.add(1)
	for range mostSearches / 2 {
		stream, err := n.client.Grep(t.Context(), api.GrepQuery{Query: api.Query{Namespace: "etl"}, Grep: api.Grep{Pattern: "x"}})
		must(t, err)
		defer stream.Close()
	}
	if _, err := n.h.searches.Take("etl"); !errors.Is(err, shares.ErrShare) {
		t.Errorf("one namespace has more than half of the slots: %v", err)
	}
	if _, _, err := n.grep(api.GrepQuery{Query: api.Query{Namespace: "other"}, Grep: api.Grep{Pattern: "x"}}); err != nil {
		t.Errorf("another namespace: %v", err)
	}
	close(hold)
}
