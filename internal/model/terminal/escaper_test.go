package terminal

import (
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// colors are the sequences that an Escaper lets through.
var colors = regexp.MustCompile("\x1b\\[[0-9;:]*m")

func TestEscaper(t *testing.T) {
	long := strings.Repeat("x", mostHeld)
	for content, want := range map[string]string{
		"one\ttab\ntwo\r\nthree\n": "one\ttab\ntwo\r\nthree\n",
		"€ cut \xe2\x82":           `€ cut \xe2\x82`,
		`C:\temp`:                  `C:\temp`,
		// Colors, and faces.
		"\x1b[31mred":                           "\x1b[31mred\x1b[0m",
		"\x1b[mend\x1b[0;1;4:3;97;107m":         "\x1b[mend\x1b[0;1;4:3;97;107m\x1b[0m",
		"\x1b[38;5;8;1mx\x1b[48;2;8;8;8m":       "\x1b[38;5;8;1mx\x1b[48;2;8;8;8m\x1b[0m",
		"\x1b[38:2::1:2:3mx":                    "\x1b[38:2::1:2:3mx\x1b[0m",
		"\x1b[01;31m\x1b[Kerror\x1b[m\x1b[0K\n": "\x1b[01;31merror\x1b[m\n\x1b[0m",
		// What hides text, and what is no color.
		"\x1b[8mhidden": `\x1b[8mhidden`,
		"\x1b[1;08m":    `\x1b[1;08m`,
		"\x1b[38;5m":    `\x1b[38;5m`,
		// A terminal that knows no colors of lines takes the rest for faces.
		"\x1b[58;5;8mx":                         `\x1b[58;5;8mx`,
		"\x1b[38;8mx":                           `\x1b[38;8mx`,
		"\x1b[38;2;1;1m":                        `\x1b[38;2;1;1m`,
		"\x1b[108m\x1b[0000m":                   `\x1b[108m\x1b[0000m`,
		"\x1b[?25l\x1b[2K\x1b[1K\x1b[2J":        `\x1b[?25l\x1b[2K\x1b[1K\x1b[2J`,
		"\x1b[>4;1m\x1b[1 m":                    `\x1b[>4;1m\x1b[1 m`,
		"\x1b]0;title\x07\x1bc":                 `\x1b]0;title\x07\x1bc`,
		"\u009b31mred":                          `\u009b31mred`,
		"\x1b[3":                                `\x1b[3`,
		"\x1b":                                  `\x1b`,
		"\x1b[" + strings.Repeat("1", 70) + "m": `\x1b[` + strings.Repeat("1", 70) + "m",
		// Lines that are written again.
		"a\n1 %\r50 %\r100 %\nb\n":             "a\n100 %\nb\n",
		"1 %\r100 %\r":                         "100 %",
		"1 %\r100 %\r\r\n":                     "100 %\r\n",
		"1 %\r100 %\r\x1b[0m\n":                "100 %\x1b[0m\n\x1b[0m",
		"\x1b[31m1 %\r\x1b[32m100 %\x1b[0m\r_": "_\x1b[0m",
		"\r\r":                                 "",
		"\rx":                                  "x",
		long + "\rshown\rmore\n1\r2":           long + `\x0dshown\x0dmore` + "\n2",
		long + long + "\n":                     long + long + "\n",
	} {
		for _, chunk := range []int{len(content), 1} {
			var b strings.Builder
			e := NewEscaper(&b, true)
			for part := range slices.Chunk([]byte(content), chunk) {
				if _, err := e.Write(part); err != nil {
					t.Fatal(err)
				}
			}
			if err := e.Close(); err != nil || b.String() != want {
				t.Errorf("%.100q is %.100q (%v), want %.100q", content, &b, err, want)
			}
		}
	}
}

// TestEscaperCounts what is not shown.
func TestEscaperCounts(t *testing.T) {
	e := NewEscaper(io.Discard, false)
	if _, err := io.WriteString(e, "1\r2\r3\nx\r\ny\r\n\r4\n5\r\r6\r"); err != nil || e.Close() != nil || e.Overwritten() != 3 {
		t.Errorf("%v, %d states", err, e.Overwritten())
	}
}

// TestEscaperWithoutColors leaves them out, and nothing else.
func TestEscaperWithoutColors(t *testing.T) {
	var b strings.Builder
	e := NewEscaper(&b, false)
	if _, err := io.WriteString(e, "\x1b[1;31mred\x1b[0m \x1b[8mhidden"); err != nil || e.Close() != nil || b.String() != `red \x1b[8mhidden` {
		t.Errorf("%v, %q", err, &b)
	}
}

func TestEscaperReportsWhatTheWriterReports(t *testing.T) {
	if _, err := NewEscaper(failing{}, true).Write([]byte("x\n")); err == nil {
		t.Error("no error")
	}
	e := NewEscaper(failing{}, true)
	if _, err := e.Write([]byte("x")); err != nil || e.Close() == nil {
		t.Errorf("%v, or none when it is closed", err)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, iotest.ErrTimeout }
