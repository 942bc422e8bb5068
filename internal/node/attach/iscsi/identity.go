package iscsi

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/katbox/katbox/internal/node/attach"
)

// Wanted says which volume a disk has to be.
type Wanted struct {
	// ID is the array's for the volume. A disk that says so is the volume, and one that says the ID of another volume
	// is not.
	ID string
	// WWID is what the volume's disk is known by; empty while that is not known. Then any disk that does not say which
	// volume it is may be the one: the caller has to find out.
	WWID string
}

// is reports whether a disk is the volume.
func (w Wanted) is(i attach.Identity) bool {
	return i.Proves(w.ID) || w.WWID != "" && i.WWID == w.WWID && !w.isAnother(i)
}

// MayBe reports whether a disk may be the volume, and has a name by which to know it from now on.
func (w Wanted) MayBe(i attach.Identity) bool {
	return w.is(i) || w.WWID == "" && i.WWID != "" && !w.isAnother(i)
}

// isAnother reports whether a disk says the ID of another volume.
func (w Wanted) isAnother(i attach.Identity) bool {
	tail := i.WWID[max(0, len(i.WWID)-len(w.ID)):]
	return !i.Proves(w.ID) && (alike(i.Serial, w.ID) || alike(tail, w.ID))
}

// alike reports whether two IDs are of the same kind: they differ in the number behind the last hyphen alone.
func alike(a, b string) bool {
	at := strings.LastIndexByte(b, '-') + 1
	return at > 0 && strings.HasPrefix(a, b[:at]) && len(a) > at && strings.Trim(a[at:], "0123456789abcdefABCDEF") == ""
}

// String is for people.
func (w Wanted) String() string {
	if w.WWID == "" {
		return w.ID
	}
	return w.ID + ", which is known as " + w.WWID
}

// pageSize is how much of a page of vital product data is asked for.
const pageSize = 255

// identityOf returns what the kernel has of a disk's pages.
func identityOf(dir string) (i attach.Identity, err error) {
	for page, text := range map[byte]*string{serialPage: &i.Serial, namePage: &i.WWID} {
		content, err := contents(filepath.Join(dir, fmt.Sprintf("vpd_pg%x", page)))
		if hasNone(err) {
			continue
		}
		if err != nil {
			return i, err
		}
		*text = parsePage(page, content[:min(len(content), pageSize)])
	}
	return i, nil
}

// parsePage reads page 0x80 or 0x83. One that cannot be used is as good as none.
func parsePage(page byte, content []byte) string {
	var text string
	if page == serialPage {
		text, _ = parseSerial(content)
	} else {
		text, _ = parseName(content)
	}
	return text
}

// namePage is the page of vital product data that has the names of a disk.
const namePage = 0x83

// parseName reads VPD page 0x83 of a disk, and returns the name that is most certainly the disk's alone. The page has a
// header as page 0x80 has, and descriptors of four bytes and a name: the kind of text, the kind of name and what it names,
// a reserved byte, the length of the name.
func parseName(page []byte) (string, error) {
	const header = 4
	if len(page) < header || page[1] != namePage {
		return "", fmt.Errorf("VPD page 0x83 begins with %.16q", page)
	}
	end := min(len(page), header+(int(page[2])<<8|int(page[3])))
	best, name := 0, ""
	for at := header; at+header <= end; {
		text, kind, length := page[at]&0xf, page[at+1]&0xf, int(page[at+3])
		begin := at + header
		if at = begin + length; at > end {
			break
		}
		const associated = 0x30 // with what the name is; 0 for the disk
		if page[begin-header+1]&associated != 0 || length == 0 {
			continue
		}
		if rank := ranks[kind]; rank.rank > best {
			best, name = rank.rank, rank.prefix+textOf(text, page[begin:at])
		}
	}
	if name == "" {
		return "", fmt.Errorf("VPD page 0x83 has no name of the disk: %.60x", page)
	}
	return name, nil
}

// ranks are the kinds of names that tell a disk from all others, with the better ones of higher rank.
var ranks = map[byte]struct {
	rank   int
	prefix string
}{3: {4, "naa."}, 2: {3, "eui."}, 8: {2, "name."}, 1: {1, "t10."}}

// textOf returns a name as text: as it is where it is text, else in hexadecimal digits.
func textOf(kind byte, name []byte) string {
	const binary = 1
	text := strings.Trim(string(name), "\x00 ")
	if kind == binary || strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c > '~' }) {
		return hex.EncodeToString(name)
	}
	return cmp.Or(text, hex.EncodeToString(name))
}
