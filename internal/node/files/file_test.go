package files

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// opened returns the file of that name, open.
func opened(t testing.TB, tree *Tree, name string) *File {
	t.Helper()
	f, err := tree.Open(path(t, name))
	must(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

func TestReadAt(t *testing.T) {
	eachKernel(t, func(t *testing.T, dir string, tree *Tree) {
		must(t, os.WriteFile(dir+"/file", []byte("0123456789"), 0o600))
		f := opened(t, tree, "file")
		tests := []struct {
			offset, length int
			want           string
			err            error
		}{
			{0, 10, "0123456789", nil},
			{0, 4, "0123", nil},
			{6, 4, "6789", nil},
			{6, 5, "6789", io.EOF},
			{10, 1, "", io.EOF},
			{99, 1, "", io.EOF},
		}
		for _, tt := range tests {
			buf := make([]byte, tt.length)
			n, err := f.ReadAt(buf, int64(tt.offset))
			if got := string(buf[:n]); got != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("%+v: %q, %v", tt, got, err)
			}
		}
		if e := f.Entry(); f.Size() != 10 || e.Name != "file" || e.Type != Regular || e.Mode != 0o600 || e.Links != 1 || e.Device == 0 {
			t.Errorf("%+v", e)
		}
	})
}

// TestChangedMeanwhile: the end that a truncation brings does not look like the end of the file, and
// what is appended is not read.
func TestChangedMeanwhile(t *testing.T) {
	eachKernel(t, func(t *testing.T, dir string, tree *Tree) {
		must(t, os.WriteFile(dir+"/file", []byte("0123456789"), 0o600))
		f := opened(t, tree, "file")
		tag := f.ETag()
		if changed, err := f.Changed(); changed || err != nil {
			t.Errorf("changed: %t, %v", changed, err)
		}
		must(t, os.WriteFile(dir+"/file", []byte("0123456789 and more"), 0o600))
		all, err := io.ReadAll(io.NewSectionReader(f, 0, 100))
		if string(all) != "0123456789" || err != nil {
			t.Errorf("of the longer file: %q, %v", all, err)
		}
		if changed, err := f.Changed(); !changed || err != nil {
			t.Errorf("longer: changed %t, %v", changed, err)
		}
		must(t, os.Truncate(dir+"/file", 5))
		n, err := f.ReadAt(make([]byte, 10), 0)
		if n != 5 || !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), `"file"`) {
			t.Errorf("of the shorter file: %d bytes, %v", n, err)
		}
		if n, err := f.ReadAt(make([]byte, 1), 7); n != 0 || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("behind its end: %d bytes, %v", n, err)
		}
		if _, err := f.Tail(t.Context(), 1, 100); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("its last line: %v", err)
		}
		if other := opened(t, tree, "file").ETag(); other == tag || !strings.HasPrefix(tag, `"`) || !strings.HasSuffix(tag, `"`) {
			t.Errorf("the tag was %s and is %s", tag, other)
		}
		// The size alone does not tell.
		must(t, os.WriteFile(dir+"/file", []byte("9876543210"), 0o600))
		must(t, os.Chtimes(dir+"/file", time.Time{}, time.Unix(1, 2)))
		if other := opened(t, tree, "file").ETag(); other == tag {
			t.Errorf("the tag is still %s", tag)
		}
		if changed, err := f.Changed(); !changed || err != nil {
			t.Errorf("of the same size: changed %t, %v", changed, err)
		}
	})
}

// TestSparse: a file of 1 TB with some bytes in it is read where they are.
func TestSparse(t *testing.T) {
	eachKernel(t, func(t *testing.T, dir string, tree *Tree) {
		const size, at = 1 << 40, 999 << 30
		file, err := os.Create(dir + "/sparse")
		must(t, err)
		defer file.Close()
		must(t, file.Truncate(size))
		text := []byte("a line\nfar behind\n")
		_, err = file.WriteAt(text, at)
		must(t, err)

		e, err := tree.Stat(path(t, "sparse"))
		if err != nil || e.Size != size || e.Allocated <= 0 || e.Allocated > 1<<20 {
			t.Errorf("%+v, %v", e, err)
		}
		f := opened(t, tree, "sparse")
		got := make([]byte, len(text))
		if _, err := f.ReadAt(got, at); err != nil || !bytes.Equal(got, text) {
			t.Errorf("read %q, %v", got, err)
		}
		start, end, err := f.Data(0)
		if err != nil || start > at || start < at-1<<20 || end < at+int64(len(text)) || end > at+1<<20 {
			t.Errorf("data from %d to %d, %v", start, end, err)
		}
		if again, _, err := f.Data(at + 3); err != nil || again != at+3 {
			t.Errorf("data from %d, %v; want from where it was asked for", again, err)
		}
		for _, offset := range []int64{end, size - 1, size, size + 1} {
			if _, _, err := f.Data(offset); !errors.Is(err, io.EOF) {
				t.Errorf("data behind %d: %v", offset, err)
			}
		}
		// Neither is in the last bytes.
		if offset, err := f.Tail(t.Context(), 2, 8<<20); err != nil || offset != size-8<<20 {
			t.Errorf("the last lines begin at %d, %v", offset, err)
		}
	})
}

func TestDataOfWholeFile(t *testing.T) {
	eachKernel(t, func(t *testing.T, dir string, tree *Tree) {
		must(t, os.WriteFile(dir+"/full", make([]byte, 10_000), 0o600))
		must(t, os.WriteFile(dir+"/empty", nil, 0o600))
		if start, end, err := opened(t, tree, "full").Data(0); start != 0 || end != 10_000 || err != nil {
			t.Errorf("from %d to %d, %v", start, end, err)
		}
		if _, _, err := opened(t, tree, "empty").Data(0); !errors.Is(err, io.EOF) {
			t.Errorf("of an empty file: %v", err)
		}
	})
}
