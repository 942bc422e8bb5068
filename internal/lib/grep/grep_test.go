package grep

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/katbox/katbox/internal/model/api"
)

// looking returns a search for a pattern.
func looking(t *testing.T, g api.Grep) *Search {
	t.Helper()
	pattern, bad := g.Compile()
	if bad != nil {
		t.Fatal(bad)
	}
	tell := g.Tell
	if tell == "" {
		tell = api.TellLines
	}
	return New(Options{Pattern: pattern, Tell: tell, Context: g.Context, Bytes: g.MaxBytes, Tick: func() error { return nil }})
}

// look searches a file that comes from somewhere.
func (s *Search) look(t *testing.T, from io.Reader) (found []string, err error) {
	t.Helper()
	err = s.File(t.Context(), nil, "f", Text, from, func(f api.GrepFound) error {
		found = append(found, fmt.Sprint(f.Line, f.Context, f.Cut, len(f.Text), f.Count))
		return nil
	})
	return found, err
}

// TestFile: text may come from anywhere, in pieces of any size.
func TestFile(t *testing.T) {
	long := strings.Repeat("x", 3*mostLine)
	for name, test := range map[string]struct {
		grep api.Grep
		text string
		want []string
		sums api.GrepSums
	}{
		"nothing": {api.Grep{Pattern: "a"}, "", nil, api.GrepSums{}},
		"no end":  {api.Grep{Pattern: "a"}, "b\na", []string{"2 false false 1 0"}, api.GrepSums{Lines: 1}},
		"ends of lines": {api.Grep{Pattern: "^a$"}, "a\r\na\n\na",
			[]string{"1 false false 1 0", "2 false false 1 0", "4 false false 1 0"}, api.GrepSums{Lines: 3}},
		"empty lines": {api.Grep{Pattern: "^$"}, "a\n\nb\n", []string{"2 false false 0 0"}, api.GrepSums{Lines: 1}},
		"a long line": {api.Grep{Pattern: "y"}, long + "y\ny\n",
			[]string{"1 false true 1 0", "2 false false 1 0"}, api.GrepSums{Lines: 2, LongLines: 1}},
		"its other pieces": {api.Grep{Pattern: "z", Context: 1}, "z" + long,
			[]string{"1 false true 2048 0", "1 true true 2048 0"}, api.GrepSums{Lines: 1, LongLines: 1}},
		"not over an end": {api.Grep{Pattern: "a.b|a\\sb"}, "a\nb\n", nil, api.GrepSums{}},
		"no text":         {api.Grep{Pattern: "a"}, "a\n\x00", nil, api.GrepSums{Binary: 1}},
		"no text later": {api.Grep{Pattern: "a", Tell: api.TellCount}, "a\n" + strings.Repeat("b\n", sniffed) + "a\x00\n",
			[]string{"0 false false 0 1"}, api.GrepSums{Lines: 1, Binary: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, wrap := range []func(io.Reader) io.Reader{func(r io.Reader) io.Reader { return r }, iotest.HalfReader, iotest.DataErrReader} {
				s := looking(t, test.grep)
				found, err := s.look(t, wrap(strings.NewReader(test.text)))
				if err != nil || !slices.Equal(found, test.want) {
					t.Errorf("found %q, %v, want %q", found, err, test.want)
				}
				test.sums.Files, s.Sums.Bytes = 1, 0
				if fmt.Sprint(s.Sums) != fmt.Sprint(test.sums) {
					t.Errorf("searched %+v, want %+v", s.Sums, test.sums)
				}
			}
		})
	}
}

// TestFileThatFails: its error ends the file alone. That of who gets what is found ends the search, and so do the budgets and
// the end of the context.
func TestFileThatFails(t *testing.T) {
	s := looking(t, api.Grep{Pattern: "a"})
	if found, err := s.look(t, io.MultiReader(strings.NewReader("a\n"), iotest.ErrReader(errors.New("bad disk")))); err != nil ||
		len(found) != 1 || s.Sums.Unreadable != 1 {
		t.Errorf("found %q, %v, %+v", found, err, s.Sums)
	}
	left := errors.New("left")
	if err := s.File(t.Context(), nil, "f", Text, strings.NewReader("a"), func(api.GrepFound) error { return left }); !errors.Is(err, left) {
		t.Errorf("a reader that has left: %v", err)
	}
	up := (*UsedUpError)(nil)
	_, err := looking(t, api.Grep{Pattern: "a", MaxBytes: 1}).look(t, strings.NewReader("ba"))
	if !errors.As(err, &up) || up.Budget != api.StopBytes {
		t.Errorf("a budget: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.File(ctx, nil, "f", Text, strings.NewReader("a"), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("the end of the context: %v", err)
	}
	s.Tick = func() error { return left }
	if _, err := s.look(t, strings.NewReader("a")); !errors.Is(err, left) {
		t.Errorf("a tick: %v", err)
	}
}

// looked counts the looks at its end.
type looked struct {
	context.Context
	times int
}

func (l *looked) Err() error {
	l.times++
	return nil
}

// TestLooksAtTheEnd: however costly the pattern is and however long the lines are, it looks often whether it is to end.
func TestLooksAtTheEnd(t *testing.T) {
	for what, line := range map[string]string{"short lines": strings.Repeat("a", 100) + "\n", "long lines": strings.Repeat("a", mostLine)} {
		s := looking(t, api.Grep{Pattern: "(?:a?){10}a{10}x"})
		text := strings.Repeat(line, 2*mostLine/len(line))
		ctx := &looked{Context: t.Context()}
		if err := s.File(ctx, nil, "f", Text, strings.NewReader(text), nil); err != nil {
			t.Fatal(err)
		}
		if steps := s.Pattern.Size * len(text) / ctx.times; steps > 2*lookEvery {
			t.Errorf("%s: it looks after %d steps", what, steps)
		}
	}
	// The place of a match in a long line is found in such a way, too.
	s := looking(t, api.Grep{Pattern: "(?:a?){15}b+x"})
	var found api.GrepFound
	text := strings.Repeat("a", mostLine-1000) + "bbx"
	err := s.File(t.Context(), nil, "f", Text, strings.NewReader(text), func(f api.GrepFound) error { found = f; return nil })
	if err != nil || !strings.Contains(found.Text, "bbx") || s.Pattern.Size*len(text) <= mostAtOnce {
		t.Errorf("found %q, %v, with a pattern of size %d", found.Text, err, s.Pattern.Size)
	}
}
