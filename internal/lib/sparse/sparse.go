// Package sparse knows the form in which GNU tar keeps a file with holes, "PAX, version 1.0". Four
// PAX records say that the file has that form and hold its real name and size. The content begins
// with a map of the extents that hold data, and then only has those.
//
// archive/tar reads such files, but byte by byte: a hole of 8 EiB, which any pod can make, takes
// years. And it does not write them: it drops the records. So both sides hide the records from it.
// They rename them to a word of the same length in the encoded header. No checksum covers records.
package sparse

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"path"
	"strconv"
)

const (
	// shown and hidden are what the names of the records begin with, in an archive and in a
	// header of archive/tar. In both forms the records are the first of a header: their order is
	// that of their names, and the others begin with small letters.
	shown  = "GNU.sparse."
	hidden = "GNU.SPARSE."

	// BlockSize is what everything in an archive is a multiple of, in bytes.
	BlockSize = 512
)

// Extent is a part of a file that holds data, in bytes.
type Extent struct {
	Offset, Length int64
}

// SetHeader makes h the header of a file with holes. stored is what the archive has of it: the map
// and the extents. The bytes that archive/tar makes of h need [Show].
func SetHeader(h *tar.Header, stored int64) {
	h.PAXRecords = map[string]string{
		hidden + "major":    "1",
		hidden + "minor":    "0",
		hidden + "name":     h.Name,
		hidden + "realsize": strconv.FormatInt(h.Size, 10),
	}
	// Programs that do not know the form unpack map and extents under this name.
	dir, file := path.Split(h.Name)
	h.Name = path.Join(dir, "GNUSparseFile.0", file)
	h.Size = stored
}

// GetHeader undoes [SetHeader] in a header that was read from bytes after [Hide], and returns how
// many bytes are stored. It reports false and changes nothing if the header is not of a file with
// holes.
func GetHeader(h *tar.Header) (stored int64, ok bool, err error) {
	if h.PAXRecords[hidden+"major"] == "" && h.PAXRecords[hidden+"map"] == "" {
		return 0, false, nil
	}
	if h.PAXRecords[hidden+"major"] != "1" || h.PAXRecords[hidden+"minor"] != "0" || h.Typeflag != tar.TypeReg {
		return 0, false, fmt.Errorf("%q has holes in a form other than GNU 1.0", h.Name)
	}
	size, err := strconv.ParseInt(h.PAXRecords[hidden+"realsize"], 10, 64)
	if err != nil || size < 0 {
		return 0, false, fmt.Errorf("%q has no valid size", h.Name)
	}
	stored = h.Size
	h.Name, h.Size = h.PAXRecords[hidden+"name"], size
	return stored, true, nil
}

// Show gives the records in an encoded header the names that they have in an archive.
func Show(header []byte) error { return rename(header, hidden, shown) }

// Hide undoes [Show].
func Hide(header []byte) error { return rename(header, shown, hidden) }

// rename renames records in a header: blocks with records, each followed by these, and the block of
// the file itself.
func rename(header []byte, from, to string) error {
	for len(header) >= BlockSize {
		records, size, err := Records(header)
		if err != nil || !records {
			return err
		}
		rest := header[BlockSize:]
		if Padded(size) > int64(len(rest)) {
			return errors.New("a header ends within its records")
		}
		if header[typeAt] == tar.TypeXHeader {
			if err := renameRecords(rest[:size], from, to); err != nil {
				return err
			}
		}
		header = rest[Padded(size):]
	}
	return nil
}

// renameRecords renames the records in b: lines "LENGTH NAME=VALUE", LENGTH being that of the line.
// A value may hold anything.
func renameRecords(b []byte, from, to string) error {
	for len(b) > 0 {
		digits, record, ok := bytes.Cut(b, []byte(" "))
		length, err := strconv.Atoi(string(digits))
		if !ok || err != nil || length <= len(digits)+1 || length > len(b) {
			return errors.New("a header has a record without a valid length")
		}
		if bytes.HasPrefix(record[:length-len(digits)-1], []byte(from)) {
			copy(record, to)
		}
		b = b[length:]
	}
	return nil
}

// Where a block of a header has its fields.
const (
	sizeAt, sizeEnd = 124, 136
	typeAt          = 156
)

// Records reports whether a block of a header is followed by records of the next one, and by how many
// bytes of them.
func Records(block []byte) (ok bool, size int64, err error) {
	switch block[typeAt] {
	case tar.TypeXHeader, tar.TypeGNULongName, tar.TypeGNULongLink:
	default:
		return false, 0, nil
	}
	// archive/tar writes this size in octal digits.
	size, err = strconv.ParseInt(string(bytes.Trim(block[sizeAt:sizeEnd], " \x00")), 8, 64)
	if err != nil || size < 0 {
		return false, 0, errors.New("a header has records without a valid size")
	}
	return true, size, nil
}

// Padded returns size rounded up to whole blocks.
func Padded(size int64) int64 {
	return (size + BlockSize - 1) / BlockSize * BlockSize
}
