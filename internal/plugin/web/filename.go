package web

import (
	"encoding/json"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxFileName bounds a name in bytes, as file systems do.
const maxFileName = 200

// fileName is the name under which a browser saves an order. It has no control characters, nothing that
// changes the direction of text, no separators, and does not begin with a dot.
func (o order) fileName() string {
	ref := strings.TrimRight(o.Path, "/")
	base := ref[strings.LastIndexByte(ref, '/')+1:]
	if decoded, err := url.PathUnescape(base); err == nil {
		base = decoded
	}
	base = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) || strings.ContainsRune(`/\:*?"<>|`, r) {
			return '_'
		}
		return r
	}, strings.ToValidUTF8(base, "_"))
	ending := ""
	if o.Kind == kindArchive {
		ending = ".tar.gz"
	}
	if strings.HasPrefix(base, ".") {
		base = "_" + base
	}
	for len(base) > maxFileName {
		_, last := utf8.DecodeLastRuneInString(base)
		base = base[:len(base)-last]
	}
	// Windows drops dots and blanks at the end.
	if base = strings.TrimRight(base, ". "); base == "" {
		base = o.Name
	}
	return base + ending
}

// attachment returns a Content-Disposition that saves a file: once in ASCII, and once in UTF-8, encoded
// as RFC 8187 says.
func attachment(name string) string {
	ascii := strings.Map(func(r rune) rune {
		if r >= utf8.RuneSelf || r == '%' {
			return '_'
		}
		return r
	}, name)
	return `attachment; filename="` + ascii + `"; filename*=UTF-8''` + strings.ReplaceAll(url.QueryEscape(name), "+", "%20")
}

// messageOf returns the message of an error of the Kubernetes API, as a line of text.
func messageOf(text []byte) string {
	var status struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(text, &status) != nil || status.Message == "" {
		return "the cluster does not say why"
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, status.Message)
}
