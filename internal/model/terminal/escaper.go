package terminal

import (
	"bytes"
	"io"
	"os"
	"slices"
	"unicode/utf8"
)

const (
	// mostHeld is how many bytes of a line are held back, in case a carriage return takes them back.
	mostHeld = 64 << 10
	// resetColors is the sequence that ends all colors.
	resetColors = "\x1b[0m"
)

// Escaper writes the content of a file to a terminal. Lines, tabs and colors stay; all else that Clean
// replaces is replaced, also where one character comes in two writes. Of a line that carriage returns
// rewrite, such as a progress bar, it writes the last state. Close writes what is left, and ends colors; it
// does not close the writer below.
type Escaper struct {
	w      io.Writer
	colors bool
	// rest is the beginning of a character or of an escape sequence.
	rest []byte
	// last is the state of the line before the last carriage return, and line the one after it.
	last, line []byte
	// shows says that line has a character that a terminal shows, colored that a color was written.
	shows, colored bool
	// long says that the line was too long to be held, and that a part of it is written.
	long        bool
	overwritten int
}

// NewEscaper returns an Escaper that writes to w. Without colors it leaves them out; see [TakesColors].
func NewEscaper(w io.Writer, colors bool) *Escaper { return &Escaper{w: w, colors: colors} }

// TakesColors reports whether the user wants colors on a terminal, and the terminal takes them.
func TakesColors(terminal any) bool { return os.Getenv("NO_COLOR") == "" && takesEscapes(terminal) }

// Overwritten returns how many states of lines were not written, since a later one of the line was.
func (e *Escaper) Overwritten() int { return e.overwritten }

// Write writes all of p, except a line, or a part of one, at its end.
func (e *Escaper) Write(p []byte) (int, error) {
	text := append(e.rest, p...)
	var out []byte
	for len(text) > 0 {
		size := e.take(&out, text, false)
		if size == 0 {
			break
		}
		text = text[size:]
	}
	e.rest = append([]byte(nil), text...)
	return len(p), e.send(out)
}

// Close writes what is held back.
func (e *Escaper) Close() error {
	var out []byte
	for len(e.rest) > 0 {
		e.rest = e.rest[e.take(&out, e.rest, true):]
	}
	e.flush(&out)
	if e.colored {
		out = append(out, resetColors...)
	}
	return e.send(out)
}

func (e *Escaper) send(out []byte) error {
	if len(out) == 0 {
		return nil
	}
	_, err := e.w.Write(out)
	return err
}

// take takes the first character or escape sequence of text. It returns how many bytes that has, 0 if
// more of it has to come first. end says that nothing comes.
func (e *Escaper) take(out *[]byte, text []byte, end bool) (size int) {
	if !end && (!utf8.FullRune(text) || len(text) == 1 && text[0] == '\r') {
		return 0
	}
	r, size := utf8.DecodeRune(text)
	switch {
	case r == '\n':
		e.flush(out)
		*out = append(*out, '\n')
		e.long = false
		return size
	case r == '\r' && len(text) > 1 && text[1] == '\n':
		// The end of a line in files that other systems wrote.
		e.flush(out)
		*out = append(*out, "\r\n"...)
		e.long = false
		return size + 1
	case r == '\r' && !e.long:
		if e.shows {
			e.forget()
			e.last, e.line, e.shows = e.line, e.last, false
		}
		return size
	case r == '\x1b':
		length, kind := sequence(text, end)
		switch {
		case kind == incomplete:
			return 0
		case kind == color && e.colors:
			e.line = append(e.line, text[:length]...)
			e.colored = true
			e.release(out)
			return length
		case kind != other:
			return length
		}
	}
	if r == '\t' {
		e.line = append(e.line, '\t')
	} else {
		e.line = append(e.line, visible(r, string(text[:size]))...)
	}
	e.shows = true
	e.release(out)
	return size
}

// release writes a line that is too long to be held.
func (e *Escaper) release(out *[]byte) {
	if len(e.line) >= mostHeld {
		e.flush(out)
		e.long = true
	}
}

// forget drops the state before the last carriage return.
func (e *Escaper) forget() {
	if len(e.last) > 0 {
		e.overwritten++
	}
	e.last = e.last[:0]
}

// flush writes the last state of the line that shows something.
func (e *Escaper) flush(out *[]byte) {
	if e.shows {
		e.forget()
	}
	*out = append(append(*out, e.last...), e.line...)
	e.last, e.line, e.shows = e.last[:0], e.line[:0], false
}

// What an escape sequence is.
const (
	other = iota
	incomplete
	// color is one that a terminal shows the text after it by, and that hides nothing.
	color
	// empty is one that erases the line right of what was written: there is nothing.
	empty
)

// longestSequence is how many bytes an escape sequence may have that is not shown.
const longestSequence = 64

// sequence returns the length and the kind of the escape sequence that text begins with. end says that
// text is not the beginning of a longer one.
func sequence(text []byte, end bool) (length, kind int) {
	for i := 1; i < min(len(text), longestSequence); i++ {
		switch b := text[i]; {
		case i == 1 && b != '[':
			return 0, other
		case i == 1, '0' <= b && b <= '9', b == ';', b == ':':
		case b == 'm' && harmless(text[2:i]):
			return i + 1, color
		case b == 'K' && (i == 2 || string(text[2:i]) == "0"):
			return i + 1, empty
		default:
			return 0, other
		}
	}
	if end || len(text) >= longestSequence {
		return 0, other
	}
	return 0, incomplete
}

// harmless reports whether the parameters of a sequence only choose colors and faces: concealed text (8)
// is there and is not seen.
func harmless(parameters []byte) bool {
	all := bytes.Split(parameters, []byte(";"))
	for len(all) > 0 {
		first, _, parts := bytes.Cut(all[0], []byte(":"))
		n := number(first)
		all = all[1:]
		switch {
		case n == 8 || n > 107:
			return false
		case parts || n != 38 && n != 48 && n != 58:
			continue
		}
		// The color follows: 5 and its number, or 2 and its red, green and blue.
		follow := 0
		if len(all) > 0 {
			follow = map[int]int{5: 2, 2: 4}[number(all[0])]
		}
		if follow == 0 || follow > len(all) {
			return false
		}
		// A terminal that knows no colors of lines takes what follows for faces.
		if n == 58 && slices.ContainsFunc(all[:follow], func(b []byte) bool { return number(b) == 8 }) {
			return false
		}
		all = all[follow:]
	}
	return true
}

// number returns a number of at most three digits; a longer one is 1000.
func number(digits []byte) int {
	if len(digits) > 3 {
		return 1000
	}
	n := 0
	for _, d := range digits {
		n = 10*n + int(d-'0')
	}
	return n
}
