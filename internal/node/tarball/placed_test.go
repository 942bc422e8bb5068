package tarball

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/sparse"
	"github.com/katbox/katbox/internal/node/files"
)

// TestEachEntryIsPlaced: entries stand side by side, and what is read from where one is said to be is what the file has.
func TestEachEntryIsPlaced(t *testing.T) {
	dir := volume(t)
	must(t, unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	var placed []Placed
	o := Options{Each: func(p Placed) error {
		placed = append(placed, p)
		return nil
	}}
	archive, report := archiveOf(t, dir, o)
	kinds := map[files.Type]int{}
	end := int64(0)
	for _, p := range placed {
		kinds[p.Type]++
		if p.Header != end || p.Content < p.Header || p.End < p.Content {
			t.Errorf("%q is at %d, %d, %d, and the one before it ends at %d", p.Name, p.Header, p.Content, p.End, end)
		}
		end = p.End
		if p.Type == files.FIFO {
			if p.End != p.Header {
				t.Errorf("a FIFO takes %d bytes", p.End-p.Header)
			}
			continue
		}
		header := bytes.Clone(archive[p.Header:p.End])
		must(t, sparse.Hide(header[:p.Content-p.Header]))
		r := tar.NewReader(bytes.NewReader(append(header, make([]byte, 1024)...)))
		h, err := r.Next()
		if err != nil {
			t.Errorf("%q: %v", p.Name, err)
			continue
		}
		if _, _, err := sparse.GetHeader(h); err != nil {
			t.Errorf("%q: %v", p.Name, err)
		}
		wantHard := ""
		if h.Typeflag == tar.TypeLink {
			wantHard = h.Linkname
		}
		if name := p.Name; h.Name != name && h.Name != name+"/" || p.HardLink != wantHard {
			t.Errorf("%q, a link to %q, is placed where %q is, a link to %q", name, p.HardLink, h.Name, wantHard)
		}
		if p.Type == files.Regular && p.HardLink == "" {
			samePlaced(t, archive, &p, filepath.Join(dir, p.Name))
		}
	}
	if report.Bytes != end+int64(len(trailer)) {
		t.Errorf("the last entry ends at %d of %d bytes", end, report.Bytes)
	}
	for _, kind := range []files.Type{files.Regular, files.Directory, files.Symlink, files.FIFO} {
		if kinds[kind] == 0 {
			t.Errorf("no %s is placed", kind)
		}
	}
	again := placed
	placed = nil
	o.Skip = report.Bytes / 2
	archiveOf(t, dir, o)
	for i, p := range placed {
		if p.Name != again[i].Name || p.Header != again[i].Header || p.Content != again[i].Content || p.End != again[i].End {
			t.Fatalf("of an archive that goes on, %q is at %d, %d, %d", p.Name, p.Header, p.Content, p.End)
		}
	}
	failed := errors.New("enough")
	_, err := Write(t.Context(), io.Discard, reading(t, dir), Options{Each: func(Placed) error { return failed }})
	wantError(t, err, failed)
}

// samePlaced compares what is in an archive with a file.
func samePlaced(t *testing.T, archive []byte, p *Placed, path string) {
	t.Helper()
	want, err := os.ReadFile(path)
	must(t, err)
	extents := p.Extents
	if !p.Sparse {
		extents = []sparse.Extent{{Length: p.Size}}
	}
	got := make([]byte, p.Size)
	at := p.Content
	for _, x := range extents {
		at += int64(copy(got[x.Offset:x.Offset+x.Length], archive[at:at+x.Length]))
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%q: there are other bytes where it is said to be", p.Name)
	}
	if p.Sparse == (len(extents) == 1 && extents[0] == sparse.Extent{Length: p.Size}) && p.Size > 0 {
		t.Errorf("%q: sparse %t, extents %v", p.Name, p.Sparse, extents)
	}
}
