package verbs

import (
	"strings"

	"github.com/katbox/katbox/internal/paths"
	"github.com/katbox/katbox/internal/terminal"
)

// ParsePath reads what follows the colon of a target: a path, or behind one more colon a path that is
// percent-encoded. It returns the path as the API takes it.
func ParsePath(text string) (ref string, err error) {
	var path paths.Path
	if encoded, ok := strings.CutPrefix(text, ":"); ok {
		path, err = paths.ParseRef(encoded)
	} else {
		path, err = paths.New(text)
	}
	if err != nil {
		return "", err
	}
	return path.Ref(), nil
}

// FormatPath returns a path as [ParsePath] reads it: as it is, or as its ref if a terminal or a line
// of text cannot hold it.
func FormatPath(path, ref string) string {
	if terminal.IsPlain(path) && !strings.HasPrefix(path, ":") {
		return path
	}
	return ":" + ref
}

// pathOf returns a path for messages; "/" for the top.
func pathOf(ref string) string {
	path, err := paths.ParseRef(ref)
	if err != nil {
		return ref
	}
	return "/" + path.String()
}

// Quoted returns what a user typed, or a path, for messages.
func Quoted(text string) string { return `"` + terminal.Quote(text) + `"` }
