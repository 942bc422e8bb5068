package tarball

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/katbox/katbox/internal/lib/paths"
	"github.com/katbox/katbox/internal/node/files"
)

// hooked calls first before the first write, at a time when 256 KiB of the archive exist.
type hooked struct {
	bytes.Buffer
	first func()
}

func (h *hooked) Write(b []byte) (int, error) {
	if h.first != nil {
		h.first()
		h.first = nil
	}
	return h.Buffer.Write(b)
}

// A file that changes while it is read keeps its announced size, and the archive its form.
func TestFileChangesMeanwhile(t *testing.T) {
	const size = 1 << 20
	padded := func(n int) string { return strings.Repeat("x", n) + strings.Repeat("\x00", size-n) }
	for _, test := range []struct {
		name   string
		sparse bool
		change func(path string) error
		want   int
		text   string
	}{
		{"shrinks", false, func(p string) error { return os.Truncate(p, 300_000) }, 1, padded(300_000)},
		{"vanishes", false, func(p string) error { return os.Truncate(p, 0) }, 1, ""},
		{"grows", false, func(p string) error { return appendTo(p, "more") }, 1, strings.Repeat("x", size)},
		{"is rewritten", false, func(p string) error { return os.Chtimes(p, later, later) }, 1, strings.Repeat("x", size)},
		{"stays", false, func(string) error { return nil }, 0, strings.Repeat("x", size)},
		{"shrinks with a hole", true, func(p string) error { return os.Truncate(p, 10) }, 1, ""},
		{"grows with a hole", true, func(p string) error { return appendTo(p, "more") }, 1, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "file")
			write(t, path, strings.Repeat("x", size))
			if test.sparse {
				must(t, os.Truncate(path, 2*size))
			}
			write(t, filepath.Join(dir, "other"), "")
			var w hooked
			w.first = func() { must(t, test.change(path)) }
			report, err := Write(t.Context(), &w, reading(t, dir), Options{})
			must(t, err)
			if report.Changed != test.want || len(report.ChangedNames) != test.want {
				t.Errorf("report: %+v", report)
			}
			if got := strings.Join(tarNames(t, w.Bytes()), " "); got != "file other" {
				t.Errorf("the archive has %q", got)
			}
			if got := contentOf(t, w.Bytes(), "file"); test.text != "" && got != test.text {
				t.Error("other content than expected")
			} else if written := strings.TrimRight(got, "\x00"); strings.Trim(written, "x") != "" || written == "" {
				t.Errorf("%d bytes are neither what the file had nor zeros", len(written))
			}
		})
	}
}

// An archive that is not complete has no end, and is no success.
func TestBrokenOff(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"), strings.Repeat("x", 1<<20))
	gone := errors.New("the volume is gone")
	for _, test := range []struct {
		name string
		end  func(cancel, lose func())
		want error
	}{
		{"volume", func(_, lose func()) { lose() }, gone},
		{"caller", func(cancel, _ func()) { cancel() }, context.Canceled},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			lost, lose := context.WithCancelCause(t.Context())
			defer lose(nil)
			r := reading(t, dir)
			r.Lost = lost
			paced := 0
			// What a context calls when it ends may run later: it has to be seen by the next pace.
			r.Pace = func(ctx context.Context) error {
				if paced++; paced == 1 {
					return nil
				}
				test.end(cancel, func() { lose(gone) })
				<-ctx.Done()
				return ctx.Err()
			}
			var w bytes.Buffer
			_, err := Write(ctx, &w, r, Options{})
			wantError(t, err, test.want)
			if w.Len() != bufferSize {
				t.Errorf("%d bytes were written, want one buffer", w.Len())
			}
		})
	}
}

func TestMaxBytes(t *testing.T) {
	dir := t.TempDir()
	for i := range 10 {
		write(t, filepath.Join(dir, fmt.Sprint(i)), strings.Repeat("x", 1000))
	}
	full, _ := archiveOf(t, dir, Options{})
	archiveOf(t, dir, Options{MaxBytes: int64(len(full))})
	for most := int64(1); most < int64(len(full)); most += min(491, max(1, int64(len(full))-most-10)) {
		var w bytes.Buffer
		report, err := Write(t.Context(), &w, reading(t, dir), Options{MaxBytes: most})
		wantError(t, err, ErrTooLarge)
		if int64(w.Len()) > most || report.Bytes > most {
			t.Fatalf("%d bytes were written, %d are allowed", w.Len(), most)
		}
	}
}

// Resuming opens only files whose content is needed, or that have holes.
func TestResumeReadsNothingBefore(t *testing.T) {
	dir := t.TempDir()
	for i := range 5 {
		write(t, filepath.Join(dir, fmt.Sprint(i)), strings.Repeat("x", 100_000))
	}
	full, _ := archiveOf(t, dir, Options{})
	opened := 0
	a := &archiver{ctx: t.Context(), out: newOutput(t.Context(), new(bytes.Buffer), int64(len(full))-100_000, nil)}
	must(t, reading(t, dir).Tree.Walk(t.Context(), paths.Path{}, nil, func(e files.Entry, open func() (*files.File, error)) error {
		return a.visit(e, func() (*files.File, error) { opened++; return open() }, a.entry)
	}))
	if opened != 1 {
		t.Errorf("%d files were opened for the end of the last one", opened)
	}
}
