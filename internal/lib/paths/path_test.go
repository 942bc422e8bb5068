package paths

import (
	"errors"
	"strings"
	"testing"

	"github.com/katbox/katbox/internal/testing/roottest/hostile"
)

func TestPath(t *testing.T) {
	tests := []struct {
		in string
		// literal and decoded are what New and ParseRef return; "bad" stands for ErrBad.
		literal, decoded string
	}{
		{in: "", literal: "", decoded: ""},
		{in: "/", literal: "", decoded: ""},
		{in: "a", literal: "a", decoded: "a"},
		{in: "a/b", literal: "a/b", decoded: "a/b"},
		{in: "/etc", literal: "etc", decoded: "etc"},
		{in: "a/", literal: "a", decoded: "a"},
		{in: "/a/", literal: "a", decoded: "a"},
		{in: "...", literal: "...", decoded: "..."},
		{in: ".. ", literal: ".. ", decoded: ".. "},
		{in: "a%FFb", literal: "a%FFb", decoded: "a\xffb"},
		{in: "a\xffb", literal: "a\xffb", decoded: "a\xffb"},
		{in: "a+b", literal: "a+b", decoded: "a+b"},
		{in: "100%25", literal: "100%25", decoded: "100%"},
		{in: "100%", literal: "100%", decoded: "bad"},
		{in: "%zz", literal: "%zz", decoded: "bad"},
		{in: "%2e%2e", literal: "%2e%2e", decoded: "bad"},
		{in: "%2E", literal: "%2E", decoded: "bad"},
		{in: "a%2Fb", literal: "a%2Fb", decoded: "bad"},
		{in: "%2F", literal: "%2F", decoded: "bad"},
		{in: "a%00", literal: "a%00", decoded: "bad"},
		{in: "..", literal: "bad", decoded: "bad"},
		{in: ".", literal: "bad", decoded: "bad"},
		{in: "./a", literal: "bad", decoded: "bad"},
		{in: "a/../..", literal: "bad", decoded: "bad"},
		{in: "a/..", literal: "bad", decoded: "bad"},
		{in: "../a", literal: "bad", decoded: "bad"},
		{in: "a//b", literal: "bad", decoded: "bad"},
		{in: "//", literal: "bad", decoded: "bad"},
		{in: "//a", literal: "bad", decoded: "bad"},
		{in: "a//", literal: "bad", decoded: "bad"},
		{in: "a\x00b", literal: "bad", decoded: "bad"},
		{in: strings.Repeat("a", 4096), literal: strings.Repeat("a", 4096), decoded: strings.Repeat("a", 4096)},
		{in: strings.Repeat("a", 4097), literal: "bad", decoded: "bad"},
		{in: strings.Repeat("a/", 2049), literal: "bad", decoded: "bad"},
		{in: strings.Repeat("a/", 5000), literal: "bad", decoded: "bad"},
		{in: strings.Repeat("%41", 4096), literal: "bad", decoded: strings.Repeat("A", 4096)},
		{in: strings.Repeat("%41", 4097), literal: "bad", decoded: "bad"},
		{in: strings.Repeat("a", 1<<20), literal: "bad", decoded: "bad"},
	}
	for _, tt := range tests {
		check := func(call, want string, p Path, err error) {
			t.Helper()
			switch {
			case want == "bad":
				if !errors.Is(err, ErrBad) || p != (Path{}) || len(err.Error()) > 2000 {
					t.Errorf("%s(%.40q): %.40q, %.200v", call, tt.in, p, err)
				}
			case err != nil || p.String() != want:
				t.Errorf("%s(%.40q): %.40q, %v, want %.40q", call, tt.in, p, err, want)
			}
		}
		p, err := New(tt.in)
		check("New", tt.literal, p, err)
		p, err = ParseRef(tt.in)
		check("ParseRef", tt.decoded, p, err)
	}
}

// TestRef: a ref is plain ASCII that needs no further quoting in a URL, a header or a terminal.
func TestRef(t *testing.T) {
	for _, name := range hostile.Names {
		p, err := New("dir/" + name)
		if err != nil {
			t.Fatal(err)
		}
		ref := p.Ref()
		if strings.Trim(ref, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/%") != "" {
			t.Errorf("the ref of %q is %q", name, ref)
		}
		if back, err := ParseRef(ref); err != nil || back != p {
			t.Errorf("%q became %q, %v", name, back, err)
		}
	}
	p, _ := New("out/a\xffb")
	if p.Ref() != "out/a%FFb" || p.Base() != "a\xffb" {
		t.Errorf("ref %q, base %q", p.Ref(), p.Base())
	}
}

// FuzzParseRef: whatever a request asks for, the path stays inside, and its ref leads back to it.
func FuzzParseRef(f *testing.F) {
	for _, ref := range []string{"", "/", "out/a%FFb", "a/../..", "%2e%2e/%2E", "a//b", "100%", "%00", "a%2Fb", "/etc/shadow", "é/\xff"} {
		f.Add(ref)
	}
	f.Fuzz(func(t *testing.T, ref string) {
		for call, parse := range map[string]func(string) (Path, error){"ParseRef": ParseRef, "New": New} {
			p, err := parse(ref)
			if err != nil {
				if !errors.Is(err, ErrBad) || !p.IsTop() {
					t.Errorf("%s(%q): %q, %v", call, ref, p, err)
				}
				continue
			}
			if len(p.String()) > Max {
				t.Errorf("%s(%q) has %d bytes", call, ref, len(p.String()))
			}
			for _, element := range p.Elements() {
				if element == "" || element == "." || element == ".." || strings.ContainsAny(element, "/\x00") {
					t.Errorf("%s(%q) has the element %q", call, ref, element)
				}
			}
			if back, err := ParseRef(p.Ref()); err != nil || back != p {
				t.Errorf("%s(%q) is %q, whose ref %q gives %q, %v", call, ref, p, p.Ref(), back, err)
			}
		}
	})
}
