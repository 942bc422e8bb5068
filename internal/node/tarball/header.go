package tarball

import (
	"archive/tar"
	"bytes"
	"time"
	"unicode/utf8"

	"github.com/katbox/katbox/internal/lib/sparse"
	"github.com/katbox/katbox/internal/node/files"
)

// header returns the header of a regular file. Other entries change it.
func header(e files.Entry, name string) *tar.Header {
	return &tar.Header{
		Typeflag: tar.TypeReg,
		Name:     name,
		Size:     e.Size,
		// Without setuid and setgid.
		Mode:    int64(e.Mode & 0o1777),
		Uid:     int(e.UID),
		Gid:     int(e.GID),
		ModTime: time.Unix(e.ModTime.Unix(), int64(e.ModTime.Nanosecond())),
	}
}

// encode returns the blocks of a header, which it puts into b.
func encode(b *bytes.Buffer, h *tar.Header) ([]byte, error) {
	if h.Typeflag != tar.TypeReg {
		h.Size = 0
	}
	b.Reset()
	if plain(b, h) {
		return b.Bytes(), nil
	}
	if h.ModTime.Nanosecond() != 0 {
		h.Format = tar.FormatPAX // Any other rounds the time.
	}
	if !utf8.ValidString(h.Name) || !utf8.ValidString(h.Linkname) {
		if h.PAXRecords == nil {
			h.PAXRecords = map[string]string{}
		}
		h.PAXRecords["hdrcharset"] = "BINARY"
	}
	b.Reset()
	if err := tar.NewWriter(b).WriteHeader(h); err != nil {
		return nil, err
	}
	return b.Bytes(), sparse.Show(b.Bytes())
}
