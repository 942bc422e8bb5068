// Package paths is the path of a file in a volume: what a person types, what a URL carries, and what
// the kernel of the node takes. It does no I/O, and is the same on every system.
package paths

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// Max is the length of the longest path, in bytes.
const Max = 4096

// ErrBad is wrapped by the error of a text that is no path: no file can have it, or it is not a valid
// ref.
var ErrBad = errors.New("not a valid path")

// Path is the path of a file from the top of a volume. The zero Path is the top. Two paths are equal
// if they are ==.
type Path struct {
	// joined are the elements with slashes between them. An element is not empty, and neither "."
	// nor "..".
	joined string
}

// New returns the path that a person typed, byte for byte. One slash before it and one behind it
// are ignored, so "/" and "" are the top. The error wraps [ErrBad] for an empty element in the
// middle, ".", "..", a NUL byte, and more than [Max] bytes.
func New(literal string) (Path, error) {
	return parse(literal, func(element string) (string, error) { return element, nil })
}

// ParseRef returns the path that a ref stands for; see [Path.Ref]. It takes bytes that a ref would
// encode as they are, except for a percent sign. The rest is as in [New], after the decoding; an
// encoded slash separates nothing and is refused.
func ParseRef(ref string) (Path, error) {
	return parse(ref, url.PathUnescape)
}

func parse(s string, decode func(element string) (string, error)) (Path, error) {
	if len(s) > 3*Max+2 {
		return Path{}, bad(s, "is longer than 4,096 bytes")
	}
	inner := strings.TrimPrefix(s, "/")
	inner = strings.TrimSuffix(inner, "/")
	if inner == "" && len(s) <= 1 {
		return Path{}, nil
	}
	elements := strings.Split(inner, "/")
	for i, element := range elements {
		element, err := decode(element)
		switch {
		case err != nil:
			return Path{}, bad(s, "has a percent sign without two hexadecimal digits")
		case element == "":
			return Path{}, bad(s, "has an empty element")
		case element == ".", element == "..":
			return Path{}, bad(s, `has an element "." or ".."`)
		case strings.ContainsAny(element, "/\x00"):
			return Path{}, bad(s, "has a slash or a NUL byte in an element")
		}
		elements[i] = element
	}
	p := Path{strings.Join(elements, "/")}
	if len(p.joined) > Max {
		return Path{}, bad(s, "is longer than 4,096 bytes")
	}
	return p, nil
}

func bad(s, reason string) error {
	return fmt.Errorf("%s: %w: it %s", quoted(s), ErrBad, reason)
}

// Ref is the path in a form that survives URLs, JSON and terminals: percent-encoded except for
// slashes, ASCII letters, digits and "-._~". [ParseRef] gives the path back. The ref of the top is
// empty.
func (p Path) Ref() string {
	const hex = "0123456789ABCDEF"
	plain := true
	for i := 0; plain && i < len(p.joined); i++ {
		plain = unreserved(p.joined[i])
	}
	if plain {
		return p.joined
	}
	ref := make([]byte, 0, len(p.joined)+32)
	for i := range len(p.joined) {
		if c := p.joined[i]; unreserved(c) {
			ref = append(ref, c)
		} else {
			ref = append(ref, '%', hex[c>>4], hex[c&15])
		}
	}
	return string(ref)
}

func unreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("/-._~", c) >= 0
}

// String is the path as the kernel takes it, without a slash before it; the top is empty. It may
// hold any byte but NUL: quote it before people see it.
func (p Path) String() string { return p.joined }

// IsTop reports whether p is the top of the volume.
func (p Path) IsTop() bool { return p.joined == "" }

// Base is the last element; it is empty for the top.
func (p Path) Base() string { return p.joined[strings.LastIndexByte(p.joined, '/')+1:] }

// Elements are the names on the way from the top, which has none.
func (p Path) Elements() []string {
	if p.IsTop() {
		return nil
	}
	return strings.Split(p.joined, "/")
}

// Join is the path of name in the directory p. It may be longer than [Max].
func (p Path) Join(name string) Path {
	if p.IsTop() {
		return Path{name}
	}
	return Path{p.joined + "/" + name}
}

// Above is the path of the directory that p is in; of the top it is the top.
func (p Path) Above() Path { return Path{p.joined[:max(0, strings.LastIndexByte(p.joined, '/'))]} }

// Quote shows the path in a message, or the end of a long one.
func (p Path) Quote() string { return quoted(p.joined) }

// mostShown bounds how many bytes of a path a message shows.
const mostShown = 256

func quoted(path string) string {
	if len(path) > mostShown {
		return "..." + strconv.Quote(path[len(path)-mostShown:])
	}
	return strconv.Quote(path)
}
