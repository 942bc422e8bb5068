package terminal

import (
	"fmt"
	"io"
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

// Escaper writes the content of a file to a terminal. Lines and tabs stay; all else that Clean
// replaces is replaced, also where one character comes in two writes. Close writes what is left of
// an incomplete character; it does not close the writer below.
type Escaper struct {
	w    io.Writer
	rest []byte
}

// NewEscaper returns an Escaper that writes to w.
func NewEscaper(w io.Writer) *Escaper { return &Escaper{w: w} }

// Write writes all of p, except a beginning of a character at its end.
func (e *Escaper) Write(p []byte) (int, error) {
	text := append(e.rest, p...)
	out := make([]byte, 0, len(text)+len(text)/8)
	for len(text) > 0 && utf8.FullRune(text) && (text[0] != '\r' || len(text) > 1) {
		var size int
		out, size = appendVisible(out, text)
		text = text[size:]
	}
	e.rest = append([]byte(nil), text...)
	if _, err := e.w.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// appendVisible appends the first character of text as a terminal may see it. It returns how many
// bytes of text that was.
func appendVisible(out, text []byte) ([]byte, int) {
	r, size := utf8.DecodeRune(text)
	switch {
	case r == '\n', r == '\t':
		return append(out, byte(r)), size
	case r == '\r' && len(text) > 1 && text[1] == '\n':
		// The end of a line in files that other systems wrote. Elsewhere it overwrites the line.
		return append(out, "\r\n"...), size + 1
	}
	return append(out, visible(r, string(text[:size]))...), size
}

// Close writes the bytes that are left of an incomplete character.
func (e *Escaper) Close() error {
	var out []byte
	for len(e.rest) > 0 {
		var size int
		out, size = appendVisible(out, e.rest)
		e.rest = e.rest[size:]
	}
	_, err := e.w.Write(out)
	return err
}
