package crilog

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

const stamp = "2026-11-30T05:00:00.123456789Z"

// all returns the texts of a log, and how many pieces and strange lines there are.
func all(t *testing.T, in io.Reader) (text string, pieces, strange int) {
	t.Helper()
	r := NewReader(in)
	var b strings.Builder
	for {
		p, err := r.Next()
		if errors.Is(err, io.EOF) {
			return b.String(), pieces, r.Strange()
		}
		if err != nil {
			t.Fatal(err)
		}
		if p.Time.UTC().Format(time.RFC3339Nano) != stamp {
			t.Errorf("the time is %s", p.Time)
		}
		if len(p.Text) > piece {
			t.Errorf("a piece has %d bytes", len(p.Text))
		}
		b.Write(p.Text)
		pieces++
	}
}

func TestReader(t *testing.T) {
	long := strings.Repeat("x", 3*piece)
	for name, test := range map[string]struct {
		in, want string
		strange  int
	}{
		"nothing":       {},
		"lines":         {in: stamp + " stdout F one\n" + stamp + " stderr F two\n", want: "one\ntwo\n"},
		"parts":         {in: stamp + " stdout P on\n" + stamp + " stdout P e\n" + stamp + " stdout F  two\n", want: "one two\n"},
		"an empty line": {in: stamp + " stdout F \n", want: "\n"},
		"tags":          {in: stamp + " stdout P:x:y a\n" + stamp + " stdout F:z b\n", want: "ab\n"},
		"no end":        {in: stamp + " stdout F cut", want: "cut"},
		"a long line":   {in: stamp + " stdout F " + long + "\n" + stamp + " stdout F next\n", want: long + "\nnext\n"},
		"a long part":   {in: stamp + " stdout P " + long + "\n" + stamp + " stdout F end\n", want: long + "end\n"},
		"as long as a piece": {in: stamp + " stdout P " + long[:piece-len(stamp)-10] + "\n" + stamp + " stdout F e\n",
			want: long[:piece-len(stamp)-10] + "e\n"},
		"other time zone":  {in: "2026-11-30T07:00:00.123456789+02:00 stdout F x\n", want: "x\n"},
		"spaces and bytes": {in: stamp + " stdout F   a \x00\xff\x1b[31m \n", want: "  a \x00\xff\x1b[31m \n"},
		"what is no line of a runtime": {in: "x\n\n" + stamp + "\n" + stamp + " std F x\n" + stamp + " stdout F\nnow stdout F x\n" +
			stamp + " stdout F y\n", want: "y\n", strange: 6},
		"years that JSON has not": {in: "0000-01-01T00:00:00Z stdout F x\n9999-12-31T23:59:59-01:00 stdout F x\n" + stamp + " stdout F y\n",
			want: "y\n", strange: 2},
		"a long one": {in: long + "\n" + stamp + " stdout F y\n", want: "y\n", strange: 1},
	} {
		t.Run(name, func(t *testing.T) {
			for _, in := range []io.Reader{strings.NewReader(test.in), iotest.DataErrReader(iotest.HalfReader(strings.NewReader(test.in)))} {
				got, _, strange := all(t, in)
				if got != test.want || strange != test.strange {
					t.Errorf("%d bytes %.100q and %d strange lines, want %d bytes %.100q and %d",
						len(got), got, strange, len(test.want), test.want, test.strange)
				}
			}
		})
	}
	failed := errors.New("failed")
	r := NewReader(io.MultiReader(strings.NewReader(stamp+" stdout F a\n"), iotest.ErrReader(failed)))
	if p, err := r.Next(); err != nil || string(p.Text) != "a\n" || !p.Ends() {
		t.Errorf("%q, %v", p.Text, err)
	}
	if _, err := r.Next(); !errors.Is(err, failed) {
		t.Errorf("%v, want the reader's", err)
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte(stamp + " stdout F one\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		r := NewReader(strings.NewReader(string(in)))
		for total := 0; ; {
			p, err := r.Next()
			if err != nil {
				return
			}
			if total += len(p.Text); total > len(in) {
				t.Fatalf("%d bytes come of %d", total, len(in))
			}
		}
	})
}
