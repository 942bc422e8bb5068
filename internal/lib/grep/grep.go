package grep

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"math"
	"regexp"
	"strings"

	"github.com/katbox/katbox/internal/lib/crilog"
	"github.com/katbox/katbox/internal/model/api"
)

const (
	// Batch is how many bytes are read at once.
	Batch = 256 << 10
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
	// atOnce is how many steps a match may take without a look at the end of the context.
	atOnce int
	// steps is how many the pattern may have taken since the pace was called, and unpaced how many bytes were read. looked is at how many
	// steps it has looked at the end of the context.
	steps, looked int
	unpaced       int64
}

// New returns a search that has not begun.
func New(o Options) *Search {
	if o.Bytes <= 0 || o.Bytes > MostBytes {
		o.Bytes = MostBytes
	}
	s := &Search{Options: o, in: bufio.NewReaderSize(nil, Batch), atOnce: mostAtOnce}
	switch prefix, whole := o.Pattern.LiteralPrefix(); {
	case whole:
		s.atOnce = math.MaxInt
	case prefix != "":
		s.atOnce = pacedEvery
	}
	return s
}

// Selects reports whether a file is searched, by its path.
func (s *Search) Selects(path string) bool { return s.Files == nil || s.Files.MatchString(path) }

// Takes reports whether a file that is selected has to be read: one without a byte is searched thereby. The error is a [*UsedUpError].
func (s *Search) Takes(size int64) (bool, error) {
	switch {
	case s.Sums.Files >= MostFiles:
		return false, &UsedUpError{api.StopFiles}
	case size == 0:
		s.Sums.Files++
		return false, nil
	}
	return true, nil
}

// Pace is called between two pieces of work. It waits as long as others come first; its error ends the search. nil: nothing does.
type Pace = func(ctx context.Context) error

// wait calls the pace, unless ctx has ended.
func wait(ctx context.Context, pace Pace) error {
	if err := ctx.Err(); err != nil || pace == nil {
		return err
	}
	return pace(ctx)
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

// KindOf returns what the file with a path is. logs: the volume has what the containers of a pod printed.
func KindOf(path string, logs bool) Kind {
	if _, name, inside := strings.Cut(path, "/"); logs && inside {
		switch n, ok := crilog.ParseName(name); {
		case ok && n.Compressed:
			return CompressedLog
		case ok:
			return Log
		}
	}
	return Text
}

// File searches one file, which ref names. It calls found for what it finds. The error is that of found, Tick or pace, that
// of ctx, or a [*UsedUpError]. What could not be read is in the Sums.
func (s *Search) File(
	ctx context.Context, pace Pace, ref string, kind Kind, from io.Reader, found func(api.GrepFound) error,
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
	pace   Pace
	from   io.Reader
	// ended is why it ended before the file.
	ended error
}

// Read reads the next bytes.
func (c *counted) Read(p []byte) (int, error) {
	left := c.search.Bytes - c.search.Sums.Bytes
	switch {
	case c.ended != nil:
	case c.search.unpaced >= Batch:
		c.search.unpaced, c.search.steps, c.search.looked = 0, 0, 0
		c.ended = wait(c.ctx, c.pace)
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

const (
	// pacedEvery is how many steps a pattern may take between two calls of the pace, and lookEvery between two looks at the end of the
	// context. Each takes some 20 ns: where 120 searches share two processors all have ended within a second.
	pacedEvery = 4 << 20
	lookEvery  = 256 << 10
	// mostAtOnce is how many steps a match may take without a look. A pattern that begins with a text, or is one, may take more: that is
	// looked for up to 300 times as fast as where the match looks in between.
	mostAtOnce = 2 << 20
)

// matches reports whether the pattern matches a text.
func (s *Search) matches(ctx context.Context, pace Pace, text []byte) (bool, error) {
	steps := s.Pattern.Size * (len(text) + 1)
	switch s.steps += steps; {
	case s.steps > pacedEvery:
		s.steps, s.looked = 0, 0
		if err := wait(ctx, pace); err != nil {
			return false, err
		}
	case s.steps-s.looked > lookEvery:
		s.looked = s.steps
		if err := ctx.Err(); err != nil {
			return false, err
		}
	}
	if steps <= s.atOnce {
		return s.Pattern.Match(text), nil
	}
	slow := s.slowly(ctx, pace, text)
	matches := s.Pattern.MatchReader(slow)
	return matches && slow.ended == nil, slow.ended
}
