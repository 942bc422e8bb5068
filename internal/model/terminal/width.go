package terminal

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// Width returns how many columns of a terminal a text takes that Clean has returned.
func Width(text string) (columns int) {
	for _, r := range text {
		columns += widthOf(r)
	}
	return columns
}

func widthOf(r rune) int {
	switch {
	case r < utf8.RuneSelf:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0 // a mark on the character before it
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// ellipsis stands for what was cut out.
const ellipsis = "..."

// Shorten returns a text that takes at most that many columns: of a longer text, its beginning and its
// end.
func Shorten(text string, columns int) string {
	if Width(text) <= columns {
		return text
	}
	room := max(0, columns-len(ellipsis))
	begin, end := 0, len(text)
	for left := room - room/2; begin < end; {
		r, size := utf8.DecodeRuneInString(text[begin:])
		if left -= widthOf(r); left < 0 {
			break
		}
		begin += size
	}
	for left := room / 2; end > begin; {
		r, size := utf8.DecodeLastRuneInString(text[:end])
		if left -= widthOf(r); left < 0 {
			break
		}
		end -= size
	}
	return text[:begin] + ellipsis[:min(len(ellipsis), max(0, columns))] + text[end:]
}
