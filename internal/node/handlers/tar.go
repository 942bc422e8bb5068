package handlers

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/katbox/katbox/internal/model/api"

	"github.com/katbox/katbox/internal/lib/paths"
	"github.com/katbox/katbox/internal/lib/patterns"
	"github.com/katbox/katbox/internal/model/asked"
	"github.com/katbox/katbox/internal/model/sealed"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/files"
	"github.com/katbox/katbox/internal/node/tarball"
)

// archive streams a tar of a directory or file.
func (a *answer) archive(ctx context.Context, reading *files.Reading, path paths.Path, q api.BytesQuery, to *sender) error {
	tag := archiveTag(a.record, path, q)
	begun, err := asked.BeginTar(a.r.Header, a.Header(), tag, cmp.Or(path.Base(), a.record.PodName, string(a.record.ID)))
	if err != nil {
		return err
	}
	if a.r.Method == http.MethodHead {
		if _, err := reading.Tree.Stat(path); err != nil {
			return err
		}
		a.WriteHeader(begun.Code)
		return nil
	}
	w := &archiveWriter{sender: to, code: begun.Code}
	sealing := sealed.NewWriter(w, begun.Word)
	report, err := w.archive(ctx, sealing, reading, tarball.Options{Path: path, Exclude: q.Exclude, MaxBytes: q.MaxBytes, Skip: begun.From,
		LowPriority: a.h.LowPriority})
	if err == nil {
		err = lost(reading)
	}
	if err != nil {
		return archiveError(err)
	}
	notes := notesOf(report)
	switch {
	case begun.Word != "":
		return sealing.Seal(notes)
	case notes.Fault != "":
		return errors.New(notes.Fault)
	}
	w.begin()
	return nil
}

// notesOf returns what there is to say about an archive.
func notesOf(report tarball.Report) sealed.Notes {
	notes := sealed.Notes{Skipped: report.Skipped, SkippedRefs: asked.Refs(report.SkippedNames), Unmatched: report.Unmatched}
	if report.Changed > 0 {
		notes.Fault = fmt.Sprintf("%d files changed while they were read: %s",
			report.Changed, strings.Join(append(asked.Refs(report.ChangedNames), "..."), " "))
	}
	return notes
}

// archiveTag names the contents of an archive in the form that they have since version 2: a retained volume does not change
// until it is published again. Its Unpublished is another one after each start of the daemon, by what the wall clock was
// adjusted meanwhile.
func archiveTag(r volume.Record, path paths.Path, q api.BytesQuery) string {
	of := fmt.Appendf(nil, "%q %d %q %q %d", r.ID, r.Published.Unix(), path.String(), q.Exclude, q.MaxBytes)
	return fmt.Sprintf("\"tar2-%x\"", sha256.Sum256(of))
}

// archiveWriter sends an archive. The header goes before the first bytes, so an error before them
// gets its own code.
type archiveWriter struct {
	*sender
	code int
	// high ends the low I/O priority.
	high func()
}

// archive writes the archive to a writer that writes to w. It has the low priority while it reads, not
// while it waits for the client.
func (w *archiveWriter) archive(ctx context.Context, to io.Writer, reading *files.Reading, o tarball.Options) (tarball.Report, error) {
	w.high = w.a.h.LowPriority()
	defer func() { w.high(); w.high = func() {} }()
	return tarball.Write(ctx, to, reading, o)
}

// Write sends the next bytes.
func (w *archiveWriter) Write(p []byte) (int, error) {
	w.high()
	defer func() { w.high = w.a.h.LowPriority() }()
	w.begin()
	return w.sender.Write(p)
}

func (w *archiveWriter) begin() {
	if w.a.Code == 0 {
		w.renew()
		w.a.WriteHeader(w.code)
	}
}

// archiveError returns the answer to an archive that failed.
func archiveError(err error) error {
	switch {
	case errors.Is(err, patterns.ErrBad):
		return bad(api.BadParameter, "exclude", "%v", err)
	case errors.Is(err, tarball.ErrBadSkip):
		return asked.Outside("%v", err)
	case errors.Is(err, tarball.ErrTooLarge):
		return bad(api.BadParameter, "maxBytes", "%v; leave something out with exclude, or read a directory further down", err)
	}
	return err
}
