package content

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestWrittenIsWhatIsThere compares what a reader is told to find with what there is.
func TestWrittenIsWhatIsThere(t *testing.T) {
	s := anybodys(t)
	s.Content.Deep = false // its paths are longer than the kernel takes
	dir, done := filled(t, s)
	found := 0
	for w := range s.Written(done) {
		found++
		path := filepath.Join(dir, w.Path)
		info, err := os.Lstat(path)
		if err != nil {
			t.Error(err)
			continue
		}
		if info.Mode().Type() != w.Type {
			t.Errorf("%q is %s, want %s", w.Path, info.Mode().Type(), w.Type)
		}
		if target, err := os.Readlink(path); w.Type == fs.ModeSymlink && (err != nil || target != w.Target) {
			t.Errorf("%q leads to %q (%v), want %q", w.Path, target, err, w.Target)
		}
		if w.Type == 0 {
			compareFile(t, path, w)
		}
	}
	entries := 0
	if err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if path != dir {
			entries++
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if found != entries {
		t.Errorf("%d were written, and there are %d", found, entries)
	}
}

// compareFile compares some parts of a file.
func compareFile(t *testing.T, path string, w Written) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Error(err)
		return
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Size() != w.Size {
		t.Errorf("%q: %v, %v; want %d bytes", w.Path, info, err, w.Size)
		return
	}
	half := w.Size / 2
	for _, part := range []struct{ from, n int64 }{
		{0, 50}, {half, 200}, {half - 50, 100}, {half + 50, 10}, {half + islandSize + 1, 50}, {w.Size - 20, 100}, {w.Size, 1},
	} {
		from := max(0, part.from)
		want, err := io.ReadAll(io.NewSectionReader(f, from, part.n))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(w.Bytes(from, part.n))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%q has from %d on the bytes %x, and should have %x (%v)", w.Path, from, want, got, err)
		}
	}
}

// TestWrittenOfAPart: what had no room is not expected.
func TestWrittenOfAPart(t *testing.T) {
	s := anybodys(t)
	for want, part := range []Filled{{}, {Marker: true}, {Marker: true, Entries: 1}} {
		n := 0
		for range s.Written(part) {
			n++
		}
		if n != want {
			t.Errorf("of %+v there are %d, want %d", part, n, want)
		}
	}
}

func TestAccessed(t *testing.T) {
	dir := t.TempDir()
	want := time.Unix(1_000_000, 0)
	path := filepath.Join(dir, "below", "file")
	if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, want, time.Now()); err != nil {
		t.Fatal(err)
	}
	if got, err := Accessed(dir, "below/file"); err != nil || !got.Equal(want) {
		t.Errorf("it was accessed at %s (%v), want %s", got, err, want)
	}
	if _, err := Accessed(dir, "below/nothing"); err == nil {
		t.Error("what is not there was accessed")
	}
}
