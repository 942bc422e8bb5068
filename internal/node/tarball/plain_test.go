package tarball

import (
	"archive/tar"
	"bytes"
	"strings"
	"testing"
	"time"
)

// TestPlainHeadersAreThoseOfTheLibrary: what plain encodes is what archive/tar encodes, byte for
// byte, and it leaves what needs more than the plain fields to it.
func TestPlainHeadersAreThoseOfTheLibrary(t *testing.T) {
	base := tar.Header{Typeflag: tar.TypeReg, Name: "out/log", Size: 1234, Mode: 0o1640, Uid: 1000, Gid: 2000,
		ModTime: time.Unix(1_700_000_000, 0)}
	for what, tt := range map[string]struct {
		change func(h *tar.Header)
		plain  bool
	}{
		"a file":          {func(*tar.Header) {}, true},
		"an empty file":   {func(h *tar.Header) { h.Size = 0 }, true},
		"a directory":     {func(h *tar.Header) { h.Typeflag, h.Name, h.Size = tar.TypeDir, "out/", 0 }, true},
		"a symbolic link": {func(h *tar.Header) { h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, "/etc/passwd", 0 }, true},
		"a hard link":     {func(h *tar.Header) { h.Typeflag, h.Linkname, h.Size = tar.TypeLink, "out/other", 0 }, true},
		"a full name":     {func(h *tar.Header) { h.Name = strings.Repeat("n", 100) }, true},
		"a full target": {func(h *tar.Header) {
			h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, strings.Repeat("t", 100), 0
		}, true},
		"the largest numbers":   {func(h *tar.Header) { h.Size, h.Uid, h.Gid = 1<<33-1, 1<<21-1, 1<<21-1 }, true},
		"the beginning of time": {func(h *tar.Header) { h.ModTime = time.Unix(0, 0) }, true},
		"a large file":          {func(h *tar.Header) { h.Size = 1 << 33 }, false},
		"a large user":          {func(h *tar.Header) { h.Uid = 1 << 21 }, false},
		"a large group":         {func(h *tar.Header) { h.Gid = 1 << 21 }, false},
		"before time":           {func(h *tar.Header) { h.ModTime = time.Unix(-1, 0) }, false},
		"far in the future":     {func(h *tar.Header) { h.ModTime = time.Unix(1<<33, 0) }, false},
		"a long name":           {func(h *tar.Header) { h.Name = strings.Repeat("n", 101) }, false},
		"a long target": {func(h *tar.Header) {
			h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, strings.Repeat("t", 101), 0
		}, false},
		"a fraction of a second": {func(h *tar.Header) { h.ModTime = time.Unix(1_700_000_000, 123_456_789) }, true},
		"half a second":          {func(h *tar.Header) { h.ModTime = time.Unix(1_700_000_000, 500_000_000) }, true},
		"a nanosecond":           {func(h *tar.Header) { h.ModTime = time.Unix(7, 1) }, true},
		"a directory with a fraction": {func(h *tar.Header) {
			h.Typeflag, h.Name, h.Size, h.ModTime = tar.TypeDir, "out/", 0, time.Unix(99, 9)
		}, true},
		"a full name with a fraction": {func(h *tar.Header) {
			h.Name, h.ModTime = strings.Repeat("d/", 43)+strings.Repeat("n", 14), time.Unix(1<<33-1, 123_456_789)
		}, true},
		"a fraction before 1970": {func(h *tar.Header) { h.ModTime = time.Unix(-2, 500_000_000) }, false},
		"another script":         {func(h *tar.Header) { h.Name = "日本" }, false},
		"not text":               {func(h *tar.Header) { h.Name = "a\xffb" }, false},
		"more records":           {func(h *tar.Header) { h.PAXRecords = map[string]string{"GNU.sparse.major": "1"} }, false},
	} {
		h := base
		tt.change(&h)
		var b bytes.Buffer
		ok := plain(&b, &h)
		if ok != tt.plain {
			t.Errorf("%s: plain: %t, want %t", what, ok, tt.plain)
		}
		if !ok {
			continue
		}
		if h.ModTime.Nanosecond() != 0 {
			h.Format = tar.FormatPAX
		}
		got, want := b.Bytes(), bytes.Buffer{}
		if err := tar.NewWriter(&want).WriteHeader(&h); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if !bytes.Equal(got, want.Bytes()) {
			t.Errorf("%s: %q\nwant %q", what, got, want.Bytes())
		}
	}
}
