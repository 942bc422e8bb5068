package tarball

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/paths"
	"github.com/katbox/katbox/internal/node/beneath"
	"github.com/katbox/katbox/internal/node/files"
)

// reading reads the volume at dir until the end of the test.
func reading(t testing.TB, dir string) *files.Reading {
	t.Helper()
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	opener, err := beneath.New(fd)
	if err != nil {
		t.Fatal(err)
	}
	tree := files.New(fd, opener)
	t.Cleanup(func() { tree.Close() })
	return &files.Reading{Tree: tree, Lost: context.Background(), Close: func() {}}
}

// mustPath is the path of a literal.
func mustPath(t testing.TB, literal string) paths.Path {
	t.Helper()
	p, err := paths.New(literal)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// archiveOf returns the archive of the volume at dir.
func archiveOf(t testing.TB, dir string, o Options) ([]byte, Report) {
	t.Helper()
	var b bytes.Buffer
	report, err := Write(t.Context(), &b, reading(t, dir), o)
	if err != nil {
		t.Fatal(err)
	}
	if want := report.Bytes - o.Skip; int64(b.Len()) != want {
		t.Fatalf("%d bytes were written, the report says %d", b.Len(), want)
	}
	return b.Bytes(), report
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t testing.TB, path, content string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(content), 0o644))
}

func wantError(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
}

var later = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// contentOf is what a file in an archive contains.
func contentOf(t testing.TB, archive []byte, name string) string {
	t.Helper()
	r := tar.NewReader(bytes.NewReader(archive))
	for {
		h, err := r.Next()
		must(t, err)
		if h.Name == name {
			b, err := io.ReadAll(r)
			must(t, err)
			return string(b)
		}
	}
}
