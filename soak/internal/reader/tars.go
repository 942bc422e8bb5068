package reader

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/soak/internal/content"
	"github.com/katbox/katbox/soak/internal/history"
)

// sparseName is the file that most tars leave out: it is long.
const sparseName = "sparse"

// readTar reads a volume as a tar, in one stream or in two, and compares all of it.
func (p *person) readTar(ctx context.Context, s *subject, things []content.Written) error {
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, streamLimit)
	defer cancel()
	q := api.BytesQuery{Archive: true}
	if s.sparse && p.random.IntN(8) > 0 {
		q.Exclude = []string{sparseName}
	}
	wanted, skipped := inTar(things, len(q.Exclude) > 0)
	stream, err := p.openTar(limited, s, q)
	if err != nil {
		return p.judge(ctx, s, began, "a tar", err)
	}
	defer stream.close()
	if err := p.checkTar(ctx, s, began, stream, wanted); err != nil {
		return err
	}
	// The end of the tar is not that of the stream, which says whether it is whole.
	if _, err := io.Copy(io.Discard, stream); err != nil {
		return p.judge(ctx, s, began, "a tar", fmt.Errorf("%w: %w", errIncomplete, err))
	}
	for path := range wanted {
		p.wrong(history.ReadsTrue, s, "the tar does not have %q and %d more", path, len(wanted)-1)
		return errOver
	}
	if n, _ := stream.last.Skipped(); n < skipped || n > skipped+1 {
		p.wrong(history.ReadsTrue, s, "the tar says that it leaves out %d entries, and %d are no files", n, skipped)
		return errOver
	}
	p.counts.tars.Add(1)
	return nil
}

// inTar is what has to be in a tar, by path, and how many things do not belong
// there. One more does not if something is mounted in the volume.
func inTar(things []content.Written, excluded bool) (wanted map[string]content.Written, skipped int) {
	wanted = make(map[string]content.Written)
	for _, w := range things {
		switch {
		case w.Type == fs.ModeNamedPipe, w.Type == fs.ModeSocket:
			skipped++
		case !excluded || w.Path != sparseName:
			wanted[w.Path] = w
		}
	}
	return wanted, skipped
}

// resumed is a stream that broke once, and was begun again there.
type resumed struct {
	io.Reader
	last *api.Stream
	// ended says that the stream came to its end, and all of it should be there.
	ended bool
}

func (r *resumed) close() { r.last.Close() }

func (r *resumed) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	r.ended = r.ended || err == io.EOF
	return n, err
}

// openTar begins a tar; every other time it breaks it off and resumes it.
func (p *person) openTar(ctx context.Context, s *subject, q api.BytesQuery) (*resumed, error) {
	stream, err := p.client.Bytes(ctx, s.volume.ID, q)
	if err != nil {
		return nil, err
	}
	if p.random.IntN(2) == 0 {
		return &resumed{Reader: p.counts.through(stream), last: stream}, nil
	}
	first := make([]byte, 1+p.random.IntN(4096))
	n, err := io.ReadFull(stream, first)
	if err != nil {
		return &resumed{Reader: io.MultiReader(bytes.NewReader(first[:n]), p.counts.through(stream)), last: stream}, nil
	}
	stream.Close()
	q.From, q.ETag = int64(n), stream.ETag
	if stream, err = p.client.Bytes(ctx, s.volume.ID, q); err != nil {
		return nil, err
	}
	if stream.Offset == 0 {
		n = 0 // it begins anew, which it may
	}
	return &resumed{Reader: io.MultiReader(bytes.NewReader(first[:n]), p.counts.through(stream)), last: stream}, nil
}

// checkTar compares the entries of a tar, and takes those that are right from what
// is wanted.
func (p *person) checkTar(ctx context.Context, s *subject, began time.Time, stream *resumed, wanted map[string]content.Written) error {
	archive := tar.NewReader(stream)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && stream.ended {
			p.wrong(history.ReadsTrue, s, "a tar ended well in its middle: %v", err)
			return errOver
		}
		if err != nil {
			return p.judge(ctx, s, began, "a tar", fmt.Errorf("%w: %w", errIncomplete, err))
		}
		path := strings.TrimSuffix(strings.TrimPrefix(header.Name, "./"), "/")
		if path == "" || path == "." || path == mountName {
			continue
		}
		w, known := wanted[path]
		if !known {
			p.wrong(p.extra(s, path), s, "the tar has %q, which no pod wrote, or has it twice", path)
			return errOver
		}
		delete(wanted, path)
		differs, err := compareEntry(archive, header, w)
		switch {
		case err != nil:
			return p.judge(ctx, s, began, "a tar", err)
		case differs != "":
			p.wrong(history.ReadsTrue, s, "in the tar %q %s", path, differs)
			return errOver
		}
	}
}

// extra is the promise that is broken by something that no pod wrote.
func (p *person) extra(s *subject, path string) history.Promise {
	if s.isMount(path) {
		return history.ReadsInside
	}
	return history.ReadsTrue
}

// compareEntry says in what an entry of a tar differs from what was written.
func compareEntry(archive io.Reader, h *tar.Header, w content.Written) (differs string, err error) {
	want := map[fs.FileMode]byte{0: tar.TypeReg, fs.ModeDir: tar.TypeDir, fs.ModeSymlink: tar.TypeSymlink}[w.Type]
	switch {
	case h.Typeflag == tar.TypeLink && w.Links > 1:
		return "", nil // another name of a file that was in the tar before
	case h.Typeflag != want:
		return fmt.Sprintf("has the type %q instead of %q", h.Typeflag, want), nil
	case w.Type == fs.ModeSymlink && h.Linkname != w.Target:
		return fmt.Sprintf("leads to %.100q instead of %.100q", h.Linkname, w.Target), nil
	case w.Type != fs.ModeSymlink && uint32(h.Mode)&0o777 != w.Mode&0o777:
		return fmt.Sprintf("has the mode %#o instead of %#o", h.Mode, w.Mode), nil
	case h.Mode&0o6000 != 0:
		return "is setuid or setgid", nil
	case w.Type != 0:
		return "", nil
	case h.Size != w.Size:
		return fmt.Sprintf("has %d bytes instead of %d", h.Size, w.Size), nil
	}
	return compare(archive, w.Bytes(0, w.Size), w.Size)
}
