package unpack

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestTwoAtOnceCompleteNothingOfEachOther: on a file system without locks two calls may go on from one checkpoint. A file
// that one of them writes gets no name from the other.
func TestTwoAtOnceCompleteNothingOfEachOther(t *testing.T) {
	eachSystem(t, func(t *testing.T, on system) {
		whole := archive(t, file("first"), file("last"))
		dest, s := t.TempDir(), saved{}
		_, err := unpackOn(t.Context(), on, bytes.NewReader(whole[:600]), Options{Dir: dest, Save: s.save})
		if err == nil {
			t.Fatal("no error")
		}
		from := s.Checkpoint
		// The other call begins the same file while this one reads its content.
		other := func() {
			must(t, os.Remove(filepath.Join(dest, from.Partial)))
			write(t, filepath.Join(dest, from.Partial), "half")
		}
		r := &interrupted{Reader: bytes.NewReader(whole[from.Next:]), at: 512, do: other}
		_, err = unpackOn(t.Context(), on, r, Options{Dir: dest, Save: s.save, From: from})
		if !errors.Is(err, errTaken) {
			t.Errorf("error %v", err)
		}
		if b, err := os.ReadFile(filepath.Join(dest, "last")); err == nil {
			t.Errorf("it has %q", b)
		}
		if b, err := os.ReadFile(filepath.Join(dest, from.Partial)); err != nil || string(b) != "half" {
			t.Errorf("the other's file: %q, %v", b, err)
		}
	})
}

// interrupted calls do once after at bytes.
type interrupted struct {
	*bytes.Reader
	at int
	do func()
}

func (i *interrupted) Read(p []byte) (int, error) {
	if i.at == 0 && i.do != nil {
		i.do()
		i.do = nil
	}
	if i.at > 0 {
		p = p[:min(len(p), i.at)]
	}
	n, err := i.Reader.Read(p)
	i.at -= n
	return n, err
}
