package sealed

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"
)

const word = "abcdefghijklmnopqrst"

// of returns a sealed body.
func of(t *testing.T, body []byte, notes Notes) []byte {
	t.Helper()
	var b bytes.Buffer
	w := NewWriter(&b, word)
	for len(body) > 0 {
		n, err := w.Write(body[:min(len(body), 1+rand.IntN(5000))])
		if err != nil {
			t.Fatal(err)
		}
		body = body[n:]
	}
	if err := w.Seal(notes); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// random returns bytes that do not repeat.
func random(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	return b
}

// TestWhole: what is sealed is read as it was, in pieces of any size.
func TestWhole(t *testing.T) {
	for _, size := range []int{0, 1, Size - 1, Size, Size + 1, bufferSize - 1, bufferSize, 300_000} {
		body := random(size)
		whole := of(t, body, Notes{Skipped: 2, SkippedRefs: []string{"a%20b", "c"}})
		if len(whole) != size+Size {
			t.Errorf("a seal of %d bytes", len(whole)-size)
		}
		for name, from := range map[string]io.Reader{
			"at once": bytes.NewReader(whole), "halves": iotest.HalfReader(bytes.NewReader(whole)),
			"with its end": iotest.DataErrReader(bytes.NewReader(whole)), "bytes": iotest.OneByteReader(bytes.NewReader(whole)),
		} {
			r := NewReader(from, word)
			if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, body) {
				t.Errorf("%d bytes, %s: %d bytes, %v", size, name, len(got), err)
			}
			if notes := r.Notes(); notes.Skipped != 2 || strings.Join(notes.SkippedRefs, " ") != "a%20b c" {
				t.Errorf("notes %+v", notes)
			}
			if n, err := r.Read(make([]byte, 9)); n != 0 || !errors.Is(err, io.EOF) {
				t.Errorf("once more: %d, %v", n, err)
			}
		}
	}
}

// TestCutAnywhere: no beginning of what is sealed is complete, whatever is in the body.
func TestCutAnywhere(t *testing.T) {
	bodies := map[string][]byte{"little": random(10), "zeros": make([]byte, 900), "more than a seal": random(Size + 700)}
	// A body that has read an earlier seal.
	bodies["a seal"] = of(t, nil, Notes{})
	bodies["seals"] = bytes.Repeat(append(of(t, []byte("x"), Notes{})[1:], 'x'), 3)
	const other = "ABCDEFGHIJKLMNOPQRST"
	for what, body := range bodies {
		var b bytes.Buffer
		w := NewWriter(&b, other)
		_, _ = w.Write(body)
		if err := w.Seal(Notes{}); err != nil {
			t.Fatal(err)
		}
		for cut := 0; cut < b.Len(); cut += 1 + b.Len()/999 {
			r := NewReader(bytes.NewReader(b.Bytes()[:cut]), other)
			if got, err := io.Copy(io.Discard, r); !errors.Is(err, ErrNoSeal) || got > int64(max(0, cut-Size)) {
				t.Fatalf("%s, %d of %d bytes: %d read, %v", what, cut, b.Len(), got, err)
			}
		}
	}
}

// TestOtherBytes: a seal is that of its body alone.
func TestOtherBytes(t *testing.T) {
	whole := of(t, random(5000), Notes{})
	for at := 0; at < 5000+len(`{"seal":"abcdefghijklmnopqrst","bytes":5000,`); at += 5 {
		changed := bytes.Clone(whole)
		changed[at] ^= 1
		_, err := io.Copy(io.Discard, NewReader(bytes.NewReader(changed), word))
		if other := errors.As(err, new(*FaultError)); !other && (at < 5000 || !errors.Is(err, ErrNoSeal)) {
			t.Fatalf("byte %d is another one: %v", at, err)
		}
	}
	for what, other := range map[string][]byte{"bytes are missing": whole[1:], "more bytes": append([]byte("x"), whole...)} {
		r := NewReader(bytes.NewReader(other), word)
		if _, err := io.Copy(io.Discard, r); !errors.As(err, new(*FaultError)) || r.Notes().Fault == "" {
			t.Errorf("%s: %v", what, err)
		}
	}
	failure := errors.New("the connection broke")
	broken := io.MultiReader(bytes.NewReader(whole), iotest.ErrReader(failure))
	if _, err := io.Copy(io.Discard, NewReader(broken, word)); !errors.Is(err, failure) {
		t.Errorf("an error behind the seal: %v", err)
	}
}

// TestNotesFit: they are what a pod and a node make of them.
func TestNotesFit(t *testing.T) {
	for what, notes := range map[string]Notes{
		"many refs":     {Skipped: -1, SkippedRefs: strings.Split(strings.Repeat("a ", 9000), " ")},
		"a long ref":    {SkippedRefs: []string{strings.Repeat("x", 9000)}},
		"a long fault":  {Fault: strings.Repeat("\u00e9\"\\\x1b", 4000), SkippedRefs: strings.Split(strings.Repeat("\"\\< ", 700), " ")},
		"largest count": {Skipped: 1<<63 - 1},
	} {
		r := NewReader(bytes.NewReader(of(t, []byte("body"), notes)), word)
		_, err := io.Copy(io.Discard, r)
		if fault := (*FaultError)(nil); errors.As(err, &fault) != (notes.Fault != "") || notes.Fault == "" && err != nil {
			t.Errorf("%s: %v", what, err)
		}
		got := r.Notes()
		if got.Skipped < 0 || strings.ContainsAny(strings.Join(got.SkippedRefs, "")+got.Fault, "\"\\\x1b\u00e9") {
			t.Errorf("%s: %+v", what, got)
		}
	}
	for text, valid := range map[string]bool{
		NewWord(): true, "": false, "short": false, strings.Repeat("a", 65): false, "abcdefghijklmnop\n": false,
	} {
		if ValidWord(text) != valid {
			t.Errorf("word %q", text)
		}
	}
}
