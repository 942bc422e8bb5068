package asked

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The types of what is sent.
const (
	TypeText  = "text/plain; charset=utf-8"
	TypeBytes = "application/octet-stream"
	TypeTar   = "application/x-tar"
	// sniffed is how many bytes of a file tell whether it is text.
	sniffed = 512
)

// Sniff returns the type of a file of size bytes: text, or bytes. It never guesses anything that a browser would
// show as a document.
func Sniff(f io.ReaderAt, size int64) (string, error) {
	buf := make([]byte, min(sniffed, size))
	if _, err := f.ReadAt(buf, 0); err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	if isText(buf, int64(len(buf)) < size) {
		return TypeText, nil
	}
	return TypeBytes, nil
}

// isText reports whether b is text in UTF-8. cut says that its last character may be cut off.
func isText(b []byte, cut bool) bool {
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		if r == utf8.RuneError && size == 1 {
			return cut && !utf8.FullRune(b)
		}
		// Logs have tabs, form feeds, and the escape sequences of colors.
		if unicode.IsControl(r) && !strings.ContainsRune("\t\n\v\f\r\b\x1b", r) {
			return false
		}
		b = b[size:]
	}
	return true
}

// Disposition returns a Content-Disposition that saves a file under a name, which may have any
// bytes: once in ASCII, and once in UTF-8, encoded as RFC 8187 says.
func Disposition(name string) string {
	name = strings.ToValidUTF8(name, "\ufffd")
	if name == "" {
		name = "volume"
	}
	var ascii, encoded strings.Builder
	for _, r := range name {
		if r < utf8.RuneSelf && (plain(byte(r)) || r == ' ') {
			ascii.WriteRune(r)
		} else {
			ascii.WriteByte('_')
		}
	}
	for i := range len(name) {
		if plain(name[i]) {
			encoded.WriteByte(name[i])
		} else {
			fmt.Fprintf(&encoded, "%%%02X", name[i])
		}
	}
	return fmt.Sprintf(`attachment; filename="%s"; filename*=UTF-8''%s`, ascii.String(), encoded.String())
}

// plain reports whether a byte may stand in both forms of a name as it is.
func plain(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0
}
