package unpack

import (
	"strings"
	"testing"

	"github.com/katbox/katbox/internal/testing/roottest/hostile"
)

func TestWindowsName(t *testing.T) {
	for name, want := range map[string]string{
		"a": "", "a.txt": "", ".a": "", " a": "", "a b": "", "a+b,c;d=e[f]": "", "~": "", "-": "", "100%": "", "e\u0301": "", "\U0001f431": "",
		"a:b": `with ":"`, "a:": `with ":"`, "a::$DATA": `with ":"`, "C:": `with ":"`, `a\b`: `with "\\"`, `..\x`: `with "\\"`, "a/b": `with "/"`,
		"a?": `with "?"`, "a*": `with "*"`, "a|b": `with "|"`, `a"b`: `with "\""`, "<a": `with "<"`, "a>": `with ">"`,
		"a\x00": `with "\x00"`, "a\nb": `with "\n"`, "\x1b[2J": `with "\x1b"`, "a\x1f": `with "\x1f"`, "a\x7f": "",
		"a.": `end with "."`, "...": `end with "."`, "a ": `end with " "`, " ": `end with " "`, ". ": `end with " "`,
		"a\xff": "UTF-8", "\xc3": "UTF-8", "\xed\xa0\x80": "UTF-8",
		"CON": "CON for a device", "con": "CON for a device", "Con.txt": "CON for a device", "NUL": "device", "nul.tar.gz": "device",
		"NUL .txt": "device",
		"AUX":      "device", "PRN": "device", "COM1": "device", "com9.log": "device", "COM0": "device", "LPT1": "device", "COM\u00b9": "device",
		"lpt\u00b3.x": "device",
		"CONIN$":      "device", "conout$": "device", "CLOCK$": "device",
		"CONSOLE": "", "xCON": "", "COM": "", "COM10": "", "COMA": "", "LPT": "", "LPTx": "", "NULL": "", "nul_": "", "a.con": "", "x.NUL": "",
	} {
		if why := windowsName(name); (why == "") != (want == "") || !strings.Contains(why, want) {
			t.Errorf("%q: %q, want %q", name, why, want)
		}
	}
}

func TestMacName(t *testing.T) {
	for name, ok := range map[string]bool{"a": true, "a:b": true, "CON": true, "e\u0301": true, " ": true, "a\xff": false, "\xc3": false} {
		if why := macName(name); (why == "") != ok {
			t.Errorf("%q: %q", name, why)
		}
	}
}

func TestWindowsTarget(t *testing.T) {
	for target, ok := range map[string]bool{
		"a": true, "a/b": true, "../a": true, "./a//b/": true, "..": true,
		"": false, "/etc/passwd": false, "/": false, "//host/share": false, `\\host\share`: false, `a\b`: false, "C:/x": false, "C:": false,
		"a/NUL": false, "a/b.": false, "a\xff": false,
	} {
		if why := windowsTarget(target); (why == "") != ok {
			t.Errorf("%q: %q", target, why)
		}
	}
}

func TestIsShortName(t *testing.T) {
	for name, want := range map[string]bool{
		"LONGNA~1.TXT": true, "longna~1": true, "a~1": true, "~1.x": true, "PROGRA~1": true, "abc~1234.htm": true,
		"a": false, "a~": false, "a~b": false, "a~1b": false, "longname~1": false, "a~1.text": false, "a.b~1": false, "file.txt.~1~": false,
	} {
		if got := isShortName(name); got != want {
			t.Errorf("%q: %t", name, got)
		}
	}
}

// TestFold: names that some system takes for one have the same fold.
func TestFold(t *testing.T) {
	for _, same := range [][]string{
		{"a", "A"}, {"readme.MD", "README.md"}, {"\u00e9", "e\u0301", "\u00c9", "E\u0301"}, {"stra\u00dfe", "STRASSE", "stra\u1e9ee"},
		{"\u03c3", "\u03c2", "\u03a3"}, {"k", "K", "\u212a"}, {"s", "S", "\u017f"}, {"\u00e5", "\u212b", "a\u030a"}, {"a", "a\u200c", "a\ufeff"},
		{"\ufb01", "fi", "FI"}, {"\u1e9b\u0323", "\u1e69", "\u1e68"}, {"\ud55c", "\u1112\u1161\u11ab"},
		{"q\u0323\u0307", "q\u0307\u0323", "Q\u0307\u0323"},
	} {
		for _, name := range same {
			if fold(name) != fold(same[0]) {
				t.Errorf("%+q is folded to %+q, and %+q to %+q", name, fold(name), same[0], fold(same[0]))
			}
		}
	}
	for _, other := range []string{"a", "b", "ab", "a.b", "a b", "1", "\u00e9", "e", "\u0436", "\xff"} {
		for _, another := range []string{"aa", "c", "a_b", "2", "\u00e8", "f", "\u0437"} {
			if fold(other) == fold(another) {
				t.Errorf("%q and %q are folded to %q", other, another, fold(other))
			}
		}
	}
	for _, name := range hostile.Names {
		if fold(fold(name)) != fold(name) {
			t.Errorf("%q is folded to %q, and that to %q", name, fold(name), fold(fold(name)))
		}
	}
}
