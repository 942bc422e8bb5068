package terminal

import (
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// JSON returns a text in JSON with the same meaning, in which every character that a terminal does
// not show is written by its number. The text is what json.Marshal has returned: it is UTF-8, and
// such characters are in strings only.
func JSON(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r == '\n' || !hidden(r):
			out = append(out, text[:size]...)
		case r < 0x10000:
			out = fmt.Appendf(out, `\u%04x`, r)
		default:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		}
		text = text[size:]
	}
	return out
}
