package grep

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/katbox/katbox/internal/lib/crilog"
	"github.com/katbox/katbox/internal/model/api"
)

// mostLine is how much of a line is searched at once.
const mostLine = 64 << 10

// errEnough ends a file of which no more is told.
var errEnough = errors.New("enough")

// piece is a line, or a part of a long one. Its text is valid until the next one.
type piece struct {
	text []byte
	at   time.Time
	// ends: the line ends with it.
	ends bool
}

// source returns what reads the file that s.in is set to, piece by piece, until io.EOF.
func (s *Search) source(kind Kind) func() (piece, error) {
	if kind != Text {
		l := &logLines{in: crilog.NewReader(s.in)}
		return l.next
	}
	t := &textLines{in: s.in}
	return t.next
}

// textLines reads a text.
type textLines struct {
	in *bufio.Reader
	// rest is what was read of a line, and whole that its end was.
	rest    []byte
	whole   bool
	sniffed bool
}

func (t *textLines) next() (piece, error) {
	if !t.sniffed {
		t.sniffed = true
		if head, _ := t.in.Peek(sniffed); bytes.IndexByte(head, 0) >= 0 { // its error comes again
			return piece{}, errBinary
		}
	}
	if len(t.rest) == 0 {
		read, err := t.in.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) && (len(read) == 0 || !errors.Is(err, io.EOF)) {
			return piece{}, err
		}
		if bytes.IndexByte(read, 0) >= 0 {
			return piece{}, errBinary
		}
		t.rest, t.whole = read, !errors.Is(err, bufio.ErrBufferFull)
	}
	text := t.rest[:min(len(t.rest), mostLine)]
	t.rest = t.rest[len(text):]
	return piece{text: text, ends: t.whole && len(t.rest) == 0}, nil
}

// logLines reads what a container printed. A runtime cuts lines after 16 KiB.
type logLines struct {
	in   *crilog.Reader
	text []byte
}

func (l *logLines) next() (piece, error) {
	var p piece
	l.text = l.text[:0]
	for !p.ends && len(l.text) < mostLine {
		next, err := l.in.Next()
		if errors.Is(err, io.EOF) && len(l.text) > 0 {
			p.ends = true
			break
		}
		if err != nil {
			return piece{}, err
		}
		if len(l.text) == 0 {
			p.at = next.Time
		}
		l.text = append(l.text, next.Text...)
		p.ends = next.Ends()
	}
	p.text = l.text
	return p, nil
}

// lines searches the lines of one file.
type lines struct {
	search *Search
	ctx    context.Context // that of Search.File, which makes one for itself alone
	pace   Pace
	ref    string
	found  func(api.GrepFound) error
	// number is that of the line, and within that it began in an earlier piece.
	number int64
	within bool
	count  int64
	// before are the last lines that were not told, and after how many are told that follow.
	before []api.GrepFound
	after  int
	// ended is why it ended before the file.
	ended error
}

// one searches a piece.
func (l *lines) one(p piece) error {
	text := bytes.TrimSuffix(bytes.TrimSuffix(p.text, []byte("\n")), []byte("\r"))
	matches, err := l.search.matches(l.ctx, l.pace, text)
	if err != nil {
		return err
	}
	if matches {
		return l.match(text, p)
	}
	if l.search.Context == 0 || l.search.Tell != api.TellLines {
		return nil
	}
	line := l.line(text, p)
	line.Context = true
	if l.after > 0 {
		l.after--
		return l.found(line)
	}
	if len(l.before) == l.search.Context {
		l.before = slices.Delete(l.before, 0, 1)
	}
	l.before = append(l.before, line)
	return nil
}

// all searches the pieces of a file.
func (l *lines) all(next func() (piece, error)) error {
	for {
		p, err := next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return errors.Join(err, l.tellCount())
		}
		if !p.ends && !l.within {
			l.search.Sums.LongLines++
		}
		if err := l.one(p); err != nil {
			l.ended = err
			return err
		}
		l.within = !p.ends
		if p.ends {
			l.number++
		}
	}
	return l.tellCount()
}

// tellCount tells how many lines match, if that is asked for.
func (l *lines) tellCount() error {
	if l.search.Tell != api.TellCount || l.count == 0 {
		return nil
	}
	l.ended = l.found(api.GrepFound{File: l.ref, Count: l.count})
	return l.ended
}

// match tells of a line that matches.
func (l *lines) match(text []byte, p piece) error {
	s := l.search
	if s.Sums.Lines >= api.MostGrepLines && s.Tell != api.TellCount {
		return &UsedUpError{api.StopLines}
	}
	s.Sums.Lines++
	l.count++
	switch s.Tell {
	case api.TellCount:
		return nil
	case api.TellFiles:
		if err := l.found(api.GrepFound{File: l.ref}); err != nil {
			return err
		}
		return errEnough
	}
	for _, line := range l.before {
		if err := l.found(line); err != nil {
			return err
		}
	}
	l.before, l.after = l.before[:0], s.Context
	return l.found(l.line(text, p))
}

// line returns a line as it is told.
func (l *lines) line(text []byte, p piece) api.GrepFound {
	f := api.GrepFound{File: l.ref, Line: l.number, Time: p.at, Cut: l.within || !p.ends}
	if len(text) > api.MostGrepText {
		f.Cut = true
		text = text[l.search.begin(l.ctx, text):]
		text = text[:min(len(text), api.MostGrepText)]
	}
	f.Text = strings.ToValidUTF8(string(text), "\ufffd")
	if len(f.Text) > api.MostGrepText { // what replaces a byte is longer
		f.Text, f.Cut = strings.ToValidUTF8(f.Text[:api.MostGrepText], ""), true
	}
	return f
}

// begin returns where what is told of a long line begins, so that the match is in it.
func (s *Search) begin(ctx context.Context, text []byte) int {
	const before = 200
	var place []int
	switch steps := s.Pattern.Size * len(text); {
	case steps <= s.atOnce:
		place = s.Pattern.FindIndex(text)
	case steps <= pacedEvery:
		place = s.Pattern.FindReaderIndex(s.slowly(ctx, nil, text)) // none, once ctx has ended
	}
	if place == nil || place[1] <= api.MostGrepText {
		return 0
	}
	return max(0, min(place[0]-before, len(text)-api.MostGrepText))
}

// paced are the characters of a text, at the pace.
type paced struct {
	ctx  context.Context // that of the search
	pace Pace
	text bytes.Reader
	// every is how many are read between two looks at the end of ctx, and read how many were.
	every, read int
	ended       error
}

// slowly returns a text that is matched at the pace, which takes more steps.
func (s *Search) slowly(ctx context.Context, pace Pace, text []byte) *paced {
	p := &paced{ctx: ctx, pace: pace, every: max(1, lookEvery/s.Pattern.Size)}
	p.text.Reset(text)
	return p
}

// ReadRune reads the next character.
func (p *paced) ReadRune() (r rune, size int, err error) {
	if p.read++; p.read%p.every == 0 && p.ended == nil {
		if p.ended = p.ctx.Err(); p.ended == nil && p.read/p.every%(pacedEvery/lookEvery) == 0 {
			p.ended = wait(p.ctx, p.pace)
		}
	}
	if p.ended != nil {
		return 0, 0, io.EOF
	}
	return p.text.ReadRune()
}
