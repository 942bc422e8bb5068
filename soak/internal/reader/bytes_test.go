package reader

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/soak/internal/content"
	"github.com/katbox/katbox/soak/internal/workload"
)

// TestParts: what a reader expects of each way to read is the part of the file that
// the request names.
func TestParts(t *testing.T) {
	s := content.Spec{ID: "csi-1", Content: workload.Content{Marker: "m", Seed: 7, Files: 30, Bytes: 3000}}
	p := &person{random: rand.New(rand.NewPCG(1, 2))}
	ways := make(map[string]int)
	for w := range s.Written(content.Filled{Marker: true, Entries: 30}) {
		all, err := io.ReadAll(w.Bytes(0, w.Size))
		if err != nil || int64(len(all)) != w.Size {
			t.Fatalf("%q has %d bytes (%v), want %d", w.Path, len(all), err, w.Size)
		}
		for range 100 {
			q, from, n := p.part(w)
			if want := named(q, all, ways); !bytes.Equal(all[from:from+n], want) {
				t.Errorf("%+v of %d bytes: from %d on %d bytes are expected, want %d", q, len(all), from, n, len(want))
			}
		}
	}
	for _, way := range []string{"all", "lines", "tail", "from", "part"} {
		if ways[way] < 10 {
			t.Errorf("%d times %q was read, want some", ways[way], way)
		}
	}
}

// named is the part of a file that a request names.
func named(q api.BytesQuery, all []byte, ways map[string]int) []byte {
	size := int64(len(all))
	switch {
	case q.TailLines > 0:
		ways["lines"]++
		lines := strings.SplitAfter(string(all), "\n")
		if lines[len(lines)-1] == "" {
			lines = lines[:len(lines)-1]
		}
		return []byte(strings.Join(lines[max(0, len(lines)-q.TailLines):], ""))
	case q.TailBytes > 0:
		ways["tail"]++
		return all[max(0, size-q.TailBytes):]
	case q.From > 0:
		ways["from"]++
		return all[q.From:]
	case q.Offset == 0 && q.Limit == 0:
		ways["all"]++
		return all
	}
	ways["part"]++
	from := q.Offset
	if from < 0 {
		from += size
	}
	return all[from:min(size, from+q.Limit)]
}

func TestCompare(t *testing.T) {
	const text = "what was written"
	cut := errors.New("cut")
	for _, test := range []struct {
		name    string
		got     io.Reader
		differs bool
		err     error
	}{
		{"the same", strings.NewReader(text), false, nil},
		{"in single bytes", iotest.OneByteReader(strings.NewReader(text)), false, nil},
		{"another byte", strings.NewReader(strings.Replace(text, "r", "R", 1)), true, nil},
		{"ends well too early", strings.NewReader(text[:5]), true, nil},
		{"has more", strings.NewReader(text + "!"), true, nil},
		{"is cut", io.MultiReader(strings.NewReader(text[:5]), iotest.ErrReader(cut)), false, cut},
		{"is cut at its end", io.MultiReader(strings.NewReader(text), iotest.ErrReader(cut)), false, cut},
		{"is wrong and cut", io.MultiReader(strings.NewReader("What"), iotest.ErrReader(cut)), true, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			differs, err := compare(test.got, strings.NewReader(text), int64(len(text)))
			if (differs != "") != test.differs || !errors.Is(err, test.err) || (err != nil) != (test.err != nil) {
				t.Errorf("it says %q and %v, want a difference: %t, and %v", differs, err, test.differs, test.err)
			}
		})
	}
}
