package terminal

import (
	"io"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// hostile has names that a pod may give its files, and what a person sees of them.
var hostile = map[string]string{
	"plain.txt":              "plain.txt",
	"with space 'n \"quote":  "with space 'n \"quote",
	"Größe-日本語-🙂.log":        "Größe-日本語-🙂.log",
	"":                       "",
	"a\nb":                   `a\x0ab`,
	"a\r\tb":                 `a\x0d\x09b`,
	"\x1b]0;title\x07":       `\x1b]0;title\x07`,
	"\x1b[2J\x1b[H":          `\x1b[2J\x1b[H`,
	"nul\x00del\x7f":         `nul\x00del\x7f`,
	"\u009b31mc1":            `\u009b31mc1`,
	"\xff\xfe":               `\xff\xfe`,
	"cut\xe2\x82":            `cut\xe2\x82`,
	"\xc2":                   `\xc2`,
	"\ufffd":                 "\ufffd",
	"exe\u202etxt.sh":        `exe\u202etxt.sh`,
	"\u2066\u2069\u200f":     `\u2066\u2069\u200f`,
	"zero\u200bwidth\ufeff":  `zero\u200bwidth\ufeff`,
	"line\u2028paragraph":    `line\u2028paragraph`,
	"tag\U000e0041":          `tag\U000e0041`,
	`back\slash`:             `back\\slash`,
	`\x1b`:                   `\\x1b`,
	"<img onerror=alert(1)>": "<img onerror=alert(1)>",
	"%n%s;":                  "%n%s;",
}

func TestQuote(t *testing.T) {
	seen := map[string]string{}
	for name, want := range hostile {
		got := Quote(name)
		if got != want {
			t.Errorf("Quote(%q) = %q, want %q", name, got, want)
		}
		if other, ok := seen[got]; ok {
			t.Errorf("%q and %q are both %q", name, other, got)
		}
		seen[got] = name
		if Clean(got) != got {
			t.Errorf("Clean changes %q, which Quote has returned", got)
		}
		if plain := strings.ReplaceAll(want, `\\`, `\`); Clean(name) != plain {
			t.Errorf("Clean(%q) = %q, want %q", name, Clean(name), plain)
		}
		if IsPlain(name) != (Clean(name) == name) {
			t.Errorf("IsPlain(%q) = %t", name, IsPlain(name))
		}
	}
}

// isSafe reports whether a terminal shows all of a text.
func isSafe(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsGraphic(r) })
}

func FuzzQuote(f *testing.F) {
	for name := range hostile {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if quoted := Quote(name); !isSafe(quoted) {
			t.Errorf("Quote(%q) = %q", name, quoted)
		}
		var whole, bytewise strings.Builder
		for b, chunk := range map[*strings.Builder]int{&whole: len(name) + 1, &bytewise: 1} {
			e := NewEscaper(b, false)
			for rest := name; rest != ""; rest = rest[min(chunk, len(rest)):] {
				if n, err := e.Write([]byte(rest[:min(chunk, len(rest))])); n != min(chunk, len(rest)) || err != nil {
					t.Fatal(n, err)
				}
			}
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if whole.String() != bytewise.String() {
			t.Errorf("%q: %q in one write, %q byte by byte", name, &whole, &bytewise)
		}
		if !isSafe(strings.NewReplacer("\r\n", "", "\n", "", "\t", "").Replace(whole.String())) {
			t.Errorf("the escaped content of %q is %q", name, &whole)
		}
		var colored strings.Builder
		e := NewEscaper(&colored, true)
		if _, err := io.WriteString(e, name); err != nil || e.Close() != nil {
			t.Fatal(err)
		}
		if plain := colors.ReplaceAllString(colored.String(), ""); plain != whole.String() {
			t.Errorf("%q with colors is %q, and without %q", name, &colored, &whole)
		}
	})
}
