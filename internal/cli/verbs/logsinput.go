package verbs

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/katbox/katbox/internal/lib/crilog"
	"github.com/katbox/katbox/internal/model/api"
)

// fewLines is how many lines the daemon counts from the end of a file: their runtime cuts lines after 16 KiB, and it looks
// at no more than 8 MiB.
const fewLines = 500

// logInput reads the files of a container one after another.
type logInput struct {
	ctx    context.Context // that of the verb
	volume Volume
	files  []logFile
	// skip is how many lines of the first file are left out, ends how many lines it is asked for; 0 for all.
	skip, ends int
	reader     *crilog.Reader
	source     io.Closer
	strange    int
}

// next returns the next piece. The error is io.EOF behind the last file.
func (in *logInput) next() (crilog.Piece, error) {
	for {
		if in.reader == nil {
			if len(in.files) == 0 {
				return crilog.Piece{}, io.EOF
			}
			content, source, err := in.open(in.files[0], in.ends)
			if err != nil {
				return crilog.Piece{}, err
			}
			in.source, in.reader = source, crilog.NewReader(&lineSkipper{in: content, left: in.skip})
			in.skip, in.ends = 0, 0
		}
		piece, err := in.reader.Next()
		if !errors.Is(err, io.EOF) {
			if err != nil {
				err = fmt.Errorf("read %s: %w", refOf(in.files[0]), err)
			}
			return piece, err
		}
		in.close()
		in.files = in.files[1:]
	}
}

func (in *logInput) close() {
	if in.reader != nil {
		in.strange += in.reader.Strange()
		in.source.Close()
		in.reader = nil
	}
}

// open opens a file, or its last lines if these are not 0.
func (in *logInput) open(f logFile, lines int) (io.Reader, *source, error) {
	src, err := open(in.ctx, in.volume, api.BytesQuery{Path: f.ref, TailLines: lines})
	if err != nil {
		return nil, nil, err
	}
	if !f.Compressed {
		return src, src, nil
	}
	unpacked, err := gzip.NewReader(src)
	if err != nil {
		src.Close()
		return nil, nil, fmt.Errorf("read %s: %w", refOf(f), err)
	}
	return unpacked, src, nil
}

// tail leaves out all lines but the last ones; -1 is all. It counts lines as the kubelet does: those that the runtime has
// written.
func (in *logInput) tail(lines int) error {
	switch {
	case lines < 0:
		return nil
	case lines == 0:
		in.files = nil
		return nil
	}
	for i, f := range slices.Backward(in.files) {
		if lines <= fewLines && !f.Compressed {
			_, src, err := in.open(f, lines)
			if err != nil {
				return err
			}
			begins := src.stream.Offset
			src.Close()
			if begins > 0 {
				in.files, in.ends = in.files[i:], lines
				return nil
			}
		}
		has, err := in.count(f)
		if err != nil {
			return err
		}
		if has >= lines {
			in.files, in.skip = in.files[i:], has-lines
			return nil
		}
		lines -= has
	}
	return nil
}

// count returns how many lines a file has.
func (in *logInput) count(f logFile) (lines int, err error) {
	content, src, err := in.open(f, 0)
	if err != nil {
		return 0, err
	}
	defer src.Close()
	buffer := make([]byte, 64<<10)
	open := false
	for {
		n, err := content.Read(buffer)
		lines += bytes.Count(buffer[:n], []byte{'\n'})
		if n > 0 {
			open = buffer[n-1] != '\n'
		}
		switch {
		case errors.Is(err, io.EOF):
			if open {
				lines++
			}
			return lines, nil
		case err != nil:
			return 0, fmt.Errorf("read %s: %w", refOf(f), err)
		}
	}
}

// lineSkipper leaves the first lines out.
type lineSkipper struct {
	in   io.Reader
	left int
}

// Read reads what is behind these lines.
func (s *lineSkipper) Read(b []byte) (int, error) {
	for {
		n, err := s.in.Read(b)
		rest := b[:n]
		for s.left > 0 && len(rest) > 0 {
			end := bytes.IndexByte(rest, '\n')
			if end < 0 {
				rest = nil
				break
			}
			rest = rest[end+1:]
			s.left--
		}
		if len(rest) > 0 || err != nil || len(b) == 0 {
			return copy(b, rest), err
		}
	}
}
