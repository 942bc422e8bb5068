package api

import (
	"fmt"
	"io"
)

const (
	// mostValues is how many values of JSON an entry of a list has at most, with some room for those
	// of later daemons; and how many an answer has beside its entries.
	mostValues = 64
	// mostUsages is how many entries a Usage has.
	mostUsages = 2 * 1001
)

// bounds are what an answer in JSON may be. A small answer can have many entries, and an empty one
// takes hundreds of bytes in memory, so it is not enough to count bytes.
type bounds struct {
	bytes int64
	// values: count values, too.
	values bool
}

// reader returns a reader of an answer that fails once the answer is beyond the bounds. entries is
// how many entries the answer may have.
func (b bounds) reader(body io.Reader, entries int) io.Reader {
	bounded := &boundedReader{r: body, left: b.bytes, most: b.bytes}
	if b.values {
		bounded.values = mostValues * (entries + 1)
		bounded.entries = entries
	}
	return bounded
}

type boundedReader struct {
	r io.Reader
	// left is how many bytes are left of most.
	left, most int64
	// values is how many values may still come, and entries how many entries were asked for; 0 if
	// values are not counted.
	values, entries int
	// inText and escaped say where in the JSON the reader is.
	inText, escaped bool
}

// Read reads from the answer. It looks at one byte beyond the bound, so that an answer that fills the
// bound exactly is not an error.
func (b *boundedReader) Read(p []byte) (int, error) {
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("the answer is longer than %d bytes; ask for fewer entries at once", b.most)
	}
	if b.entries > 0 && !b.count(p[:n]) {
		return 0, fmt.Errorf("the answer has more than the %d entries that were asked for", b.entries)
	}
	return n, err
}

// count counts values: there is one more of them in an object or an array than there are commas. It
// returns false when there are too many.
func (b *boundedReader) count(p []byte) bool {
	for _, c := range p {
		switch {
		case b.escaped:
			b.escaped = false
		case b.inText:
			b.escaped, b.inText = c == '\\', c != '"'
		case c == '"':
			b.inText = true
		case c == ',' || c == '{' || c == '[':
			b.values--
		}
	}
	return b.values >= 0
}
