package tarball

import (
	"archive/tar"
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/cli/unpack"
	"github.com/katbox/katbox/internal/lib/sparse"
)

// A file of 1 TB with 1 MiB of data becomes an archive of about 1 MiB, and holes again.
func TestSparseTerabyte(t *testing.T) {
	const size, each = 1_000_000_000_000, 64 << 10
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "file"))
	must(t, err)
	defer f.Close()
	must(t, f.Truncate(size))
	data := bytes.Repeat([]byte("data"), each/4)
	for i := range 16 {
		_, err := f.WriteAt(data, int64(i)*size/16/4096*4096)
		must(t, err)
	}
	archive, report := archiveOf(t, dir, Options{})
	if len(archive) > 1<<20+64<<10 || report.Changed > 0 {
		t.Errorf("the archive has %d bytes; %+v", len(archive), report)
	}
	to := t.TempDir()
	_, err = unpack.Unpack(t.Context(), bytes.NewReader(archive), unpack.Options{Dir: to})
	must(t, err)
	again, _ := archiveOf(t, to, Options{})
	if !bytes.Equal(normalized(archive), normalized(again)) {
		t.Error("unpacked and archived again, it is another archive")
	}
}

// normalized is an archive without its header: the map, and the data.
func normalized(archive []byte) []byte { return archive[bytes.Index(archive, []byte("17\n0\n")):] }

// The extents stay as many as the map may have, hold all that was added, and keep the large holes.
func TestExtentsAreMerged(t *testing.T) {
	const count, group = 5 * sparse.MaxExtents, 32
	place := func(i int64) int64 { return i*8192 + i/group<<30 }
	m := merger{hole: 1}
	for i := range int64(count) {
		m.add(sparse.Extent{Offset: place(i), Length: 4096})
		if len(m.extents) >= sparse.MaxExtents {
			t.Fatalf("%d extents", len(m.extents))
		}
	}
	if len(m.extents) < count/group {
		t.Errorf("%d extents are left of %d groups", len(m.extents), count/group)
	}
	next := 0
	for i := range int64(count) {
		for m.extents[next].Offset+m.extents[next].Length <= place(i) {
			next++
		}
		if x := m.extents[next]; x.Offset > place(i) || x.Offset+x.Length < place(i)+4096 {
			t.Fatalf("extent %d is lost", i)
		}
	}
}

// The largest map is one that archive/tar still reads.
func TestLargestMap(t *testing.T) {
	var extents []sparse.Extent
	for i := range int64(sparse.MaxExtents - 1) {
		extents = append(extents, sparse.Extent{Offset: math.MaxInt64/2 + i*1<<30, Length: 1 << 29})
	}
	if text := sparse.AppendMap(nil, extents, math.MaxInt64); len(text) > 1<<20 {
		t.Errorf("the map takes %d bytes", len(text))
	}
}

// Headers hold what does not fit into the fields of old.
func TestHeaders(t *testing.T) {
	for _, h := range []tar.Header{
		{Typeflag: tar.TypeReg, Name: "big", Size: math.MaxInt64, Mode: 0o644},
		{Typeflag: tar.TypeReg, Name: "owner", Uid: math.MaxUint32, Gid: math.MaxUint32 - 1},
		{Typeflag: tar.TypeReg, Name: "old", ModTime: time.Unix(-1, 0)},
		{Typeflag: tar.TypeReg, Name: "older", ModTime: time.Unix(-1<<40, 0)},
		{Typeflag: tar.TypeReg, Name: "future", ModTime: time.Unix(1<<40, 0)},
		{Typeflag: tar.TypeDir, Name: string(bytes.Repeat([]byte("d/"), 30_000))},
		{Typeflag: tar.TypeSymlink, Name: "link", Linkname: string(bytes.Repeat([]byte("\xff/"), 2000))},
		{Typeflag: tar.TypeReg, Name: "9 GNU.sparse.major=0\n\xff", Size: 5},
	} {
		for _, holes := range []bool{false, true} {
			if holes && h.Typeflag != tar.TypeReg {
				continue
			}
			in := h
			if holes {
				sparse.SetHeader(&in, 512)
			}
			b, err := encode(new(bytes.Buffer), &in)
			must(t, err)
			if holes {
				b = append(b, sparse.AppendMap(nil, nil, h.Size)...)
			}
			out, err := tar.NewReader(bytes.NewReader(b)).Next()
			must(t, err)
			if h.ModTime.IsZero() {
				h.ModTime = time.Unix(0, 0)
			}
			want := fmt.Sprint(h.Name, h.Size, h.Uid, h.Gid, h.ModTime.Unix(), h.Linkname, h.Mode)
			if got := fmt.Sprint(out.Name, out.Size, out.Uid, out.Gid, out.ModTime.Unix(), out.Linkname, out.Mode); got != want {
				t.Errorf("%.200q, want %.200q", got, want)
			}
		}
	}
}
