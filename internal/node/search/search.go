package search

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"regexp"
	"strings"

	"github.com/katbox/katbox/internal/lib/crilog"
	"github.com/katbox/katbox/internal/lib/paths"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/node/files"
)

const (
	// batch is how many bytes are read at once.
	batch = 256 << 10
	// sniffed is how many bytes at the beginning of a file tell at once that it is no text.
	sniffed = 32 << 10
)

// Budgets of a search over any number of volumes.
const (
	// MostBytes is how much is read, unless the reader asks for less; MostFiles how many files are opened.
	MostBytes = 64 << 30
	MostFiles = 4_000_000
)

// UsedUpError says that a budget is used up. What was found before stays true.
type UsedUpError struct{ Budget string }

func (e *UsedUpError) Error() string { return "the budget of the search is used up: " + e.Budget }

// errBinary: the file is no text.
var errBinary = errors.New("it is no text")

// Options are what is looked for.
type Options struct {
	Pattern api.Pattern
	// Files selects files by their paths; nil selects all.
	Files *regexp.Regexp
	// Tell and Context are those of [api.Grep].
	Tell    string
	Context int
	// Bytes bounds how much is read; 0 is MostBytes.
	Bytes int64
	// Tick is called often, between two pieces of work.
	Tick func() error
}

// Search is a search over some volumes, one after another.
type Search struct {
	Options
	// Sums are what was searched by now.
	Sums api.GrepSums

	in *bufio.Reader
	// kept is about how much of what was read the kernel still has in memory.
	kept int64
	// steps is how many the pattern may have taken since the pace was called, and unpaced how many bytes were read.
	steps   int
	unpaced int64
}

// New returns a search that has not begun.
func New(o Options) *Search {
	if o.Bytes <= 0 || o.Bytes > MostBytes {
		o.Bytes = MostBytes
	}
	return &Search{Options: o, in: bufio.NewReaderSize(nil, batch)}
}

// Volume searches the files of a volume; logs says that they are what the containers of a pod printed. It calls found for what
// it finds. The error is that of found or of Tick, the cause of the end of ctx, a [*UsedUpError], the cause of the loss of r,
// or one of walking through the volume. What could not be read of its files is in the Sums.
func (s *Search) Volume(ctx context.Context, r *files.Reading, logs bool, found func(api.GrepFound) error) error {
	if lost := context.Cause(r.Lost); lost != nil {
		return lost
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(r.Lost, func() { cancel(context.Cause(r.Lost)) })
	defer stop()
	err := r.Tree.Walk(ctx, paths.Path{}, r.Pace, func(e files.Entry, open func() (*files.File, error)) error {
		if err := s.Tick(); err != nil {
			return err
		}
		return s.entry(ctx, r.Pace, e, open, logs, found)
	})
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// entry searches an entry, if it is a file that is selected.
func (s *Search) entry(
	ctx context.Context, pace files.Pace, e files.Entry, open func() (*files.File, error), logs bool, found func(api.GrepFound) error,
) error {
	switch {
	case e.TooDeep, e.Type == files.Regular && len(e.Path.String()) > paths.Max:
		s.Sums.Deep++
		return nil
	case e.Type != files.Regular, s.Files != nil && !s.Files.MatchString(e.Path.String()):
		return nil
	case s.Sums.Files >= MostFiles:
		return &UsedUpError{api.StopFiles}
	case e.Size == 0:
		s.Sums.Files++
		return nil
	}
	f, err := open()
	if err != nil {
		s.Sums.Files++
		s.Sums.Unreadable++
		return nil
	}
	defer f.Close()
	c := &content{search: s, file: f}
	defer c.end()
	kind := Text
	if _, name, inside := strings.Cut(e.Path.String(), "/"); logs && inside {
		if n, ok := crilog.ParseName(name); ok {
			kind = Log
			if n.Compressed {
				kind = CompressedLog
			}
		}
	}
	return s.File(ctx, pace, e.Path.Ref(), kind, c, found)
}

// Kind is what a file is.
type Kind int

// The kinds of files.
const (
	Text Kind = iota
	// Log is what a container printed, as its runtime writes it, and CompressedLog that in gzip.
	Log
	CompressedLog
)

// File searches one file, which ref names. Its errors are those of Volume, except for the loss.
func (s *Search) File(
	ctx context.Context, pace files.Pace, ref string, kind Kind, from io.Reader, found func(api.GrepFound) error,
) error {
	s.Sums.Files++
	in := &counted{ctx: ctx, search: s, pace: pace, from: from}
	if kind == CompressedLog {
		unpacked, err := gzip.NewReader(from)
		if err != nil {
			s.Sums.Unreadable++
			return ctx.Err()
		}
		in.from = unpacked
	}
	s.in.Reset(in)
	l := &lines{search: s, ctx: ctx, pace: pace, ref: ref, found: found, number: 1}
	err := l.all(s.source(kind))
	switch {
	case err == nil, errors.Is(err, errEnough):
		return nil
	case in.ended != nil: // not by the file
		return in.ended
	case l.ended != nil:
		return l.ended
	case errors.Is(err, errBinary):
		s.Sums.Binary++
		return nil
	}
	s.Sums.Unreadable++
	return nil
}

// counted counts what is read, and ends with the budget.
type counted struct {
	ctx    context.Context // that of File, which makes one for itself alone
	search *Search
	pace   files.Pace
	from   io.Reader
	// ended is why it ended before the file.
	ended error
}

// Read reads the next bytes.
func (c *counted) Read(p []byte) (int, error) {
	left := c.search.Bytes - c.search.Sums.Bytes
	switch {
	case c.ended != nil:
	case c.search.unpaced >= batch:
		c.search.unpaced, c.search.steps = 0, 0
		c.ended = c.pace.Wait(c.ctx)
	default:
		c.ended = c.ctx.Err()
	}
	if c.ended == nil {
		c.ended = c.search.Tick()
	}
	if c.ended == nil && left <= 0 {
		c.ended = &UsedUpError{api.StopBytes}
	}
	if c.ended != nil {
		return 0, c.ended
	}
	n, err := c.from.Read(p[:min(int64(len(p)), left)])
	c.search.Sums.Bytes += int64(n)
	c.search.unpaced += int64(n)
	return n, err
}

// dropEvery is how many bytes are read before the kernel may forget them: of a large file, or of small files together. From
// then on it forgets each small file.
const dropEvery = 8 << 20

// content is an open file from its beginning.
type content struct {
	search          *Search
	file            *files.File
	offset, dropped int64
}

// Read reads the next bytes.
func (c *content) Read(p []byte) (int, error) {
	n, err := c.file.ReadAt(p[:min(len(p), batch)], c.offset)
	c.offset += int64(n)
	if c.offset-c.dropped >= dropEvery {
		c.file.DropBehind(c.dropped, c.offset)
		c.dropped = c.offset
	}
	if err != nil && n > 0 && errors.Is(err, io.EOF) {
		return n, nil
	}
	return n, err
}

// end is called before the file is closed.
func (c *content) end() {
	const page = 4096
	if c.search.kept += c.offset - c.dropped + page; c.search.kept > dropEvery {
		c.search.kept -= c.offset - c.dropped + page
		c.file.DropOnClose()
	}
}

// pacedEvery is how many steps a pattern may take between two calls of the pace. Each takes some 20 ns.
const pacedEvery = 4 << 20

// matches reports whether the pattern matches a text.
func (s *Search) matches(ctx context.Context, pace files.Pace, text []byte) (bool, error) {
	steps := s.Pattern.Size * (len(text) + 1)
	if s.steps += steps; s.steps > pacedEvery {
		s.steps = 0
		if err := pace.Wait(ctx); err != nil {
			return false, err
		}
	}
	if steps <= pacedEvery {
		return s.Pattern.Match(text), nil
	}
	slow := &paced{ctx: ctx, pace: pace, every: max(1, pacedEvery/s.Pattern.Size)}
	slow.text.Reset(text)
	matches := s.Pattern.MatchReader(slow)
	return matches && slow.ended == nil, slow.ended
}
