package terminal

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Quote returns a name in a form that is safe on a terminal and tells every name from every other:
// control characters are \x1b, marks that change the direction of text are \u202e, bytes that are
// not UTF-8 are \xff, and a backslash is \\. Plain names stay as they are.
func Quote(name string) string { return escape(name, `\`) }

// Clean returns a text with the same replacements as Quote, except that a backslash stays. What
// Quote has returned stays as it is.
func Clean(text string) string { return escape(text, "") }

// IsPlain reports whether Clean returns the text as it is.
func IsPlain(text string) bool { return Clean(text) == text }

func escape(text, also string) string {
	if !strings.ContainsFunc(text, hidden) && !strings.ContainsAny(text, also) && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if text[:size] == also {
			b.WriteString(`\`)
		}
		b.WriteString(visible(r, text[:size]))
		text = text[size:]
	}
	return b.String()
}

// hidden reports whether a terminal does something else with r than to show it.
func hidden(r rune) bool { return !unicode.IsGraphic(r) }

// visible returns encoded, which is r in UTF-8 or a byte that is not, if a terminal shows it, and
// its number if not.
func visible(r rune, encoded string) string {
	switch {
	case r == utf8.RuneError && len(encoded) == 1, r < utf8.RuneSelf && hidden(r):
		return fmt.Sprintf(`\x%02x`, encoded[0])
	case !hidden(r):
		return encoded
	case r < 0x10000:
		return fmt.Sprintf(`\u%04x`, r)
	}
	return fmt.Sprintf(`\U%08x`, r)
}
