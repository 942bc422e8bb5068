package tarball

import (
	"archive/tar"
	"bytes"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/katbox/katbox/internal/lib/sparse"
)

// plain encodes a header that needs nothing beyond the fields of USTAR except the fraction of a second of its time. It
// appends the bytes that archive/tar would, in a tenth of the time: of a small file, that is a fifth of all. It reports
// false, and has written nothing, for any other header.
func plain(b *bytes.Buffer, h *tar.Header) bool {
	if len(h.PAXRecords) > 0 || !short(h.Name) || !short(h.Linkname) {
		return false
	}
	var block [sparse.BlockSize]byte
	if !fields(&block, h.Mode, h.Uid, h.Gid, h.Size, h.ModTime.Unix()) {
		return false
	}
	if fraction := h.ModTime.Nanosecond(); fraction != 0 {
		time := fmt.Sprintf("%d.%09d", h.ModTime.Unix(), fraction)
		record(b, h.Name, "mtime="+strings.TrimRight(time, "0")+"\n")
	}
	copy(block[:100], h.Name)
	copy(block[157:257], h.Linkname)
	octal(block[329:337], 0)
	octal(block[337:345], 0)
	seal(b, &block, h.Typeflag)
	return true
}

// record appends a header with one record, which is shorter than a block, for the next entry.
func record(b *bytes.Buffer, name, text string) {
	// The length counts its own digits and a space.
	length := len(text) + len("10 ")
	var block, content [sparse.BlockSize]byte
	length = copy(content[:], fmt.Sprintf("%d %s", length, text))
	dir, file := path.Split(name)
	copy(block[:100], strings.TrimRight(cut(path.Join(dir, "PaxHeaders.0", file), 100), "/"))
	fields(&block, 0, 0, 0, int64(length), 0)
	seal(b, &block, tar.TypeXHeader)
	b.Write(content[:])
}

func cut(s string, most int) string { return s[:min(len(s), most)] }

// fields sets the numbers of a header, if they fit.
func fields(block *[sparse.BlockSize]byte, mode int64, uid, gid int, size, modified int64) bool {
	return octal(block[100:108], mode) && octal(block[108:116], int64(uid)) && octal(block[116:124], int64(gid)) &&
		octal(block[124:136], size) && octal(block[136:148], modified)
}

// seal appends a header that has all but its form and its sum.
func seal(b *bytes.Buffer, block *[sparse.BlockSize]byte, kind byte) {
	block[156] = kind
	copy(block[257:265], "ustar\x0000")
	sum := int64(8 * ' ')
	for _, c := range block {
		sum += int64(c)
	}
	octal(block[148:155], sum)
	block[155] = ' '
	b.Write(block[:])
}

// short reports whether a name fits into its field, and is ASCII.
func short(name string) bool {
	if len(name) > 100 {
		return false
	}
	for i := range len(name) {
		if name[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// octal writes a number with a NUL at its end, if it fits.
func octal(field []byte, n int64) bool {
	last := len(field) - 2
	for i := last; i >= 0; i-- {
		field[i] = byte('0' + n&7)
		n >>= 3
	}
	return n == 0
}
