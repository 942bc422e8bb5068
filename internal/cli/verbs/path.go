package verbs

import (
	"strings"

	"github.com/katbox/katbox/internal/lib/paths"
	"github.com/katbox/katbox/internal/model/terminal"
)

// CutTarget reads TARGET[:PATH]. Names of Kubernetes' objects have no colon, so that the first one begins
// the path. It returns what is before the colon, and the path as the API takes it; hasPath says that
// there was a colon.
func CutTarget(text string) (head, ref string, hasPath bool, err error) {
	head, path, hasPath := strings.Cut(text, ":")
	if hasPath {
		if ref, err = ParsePath(path); err != nil {
			return head, "", true, WrongUsage("%s: %s", Quoted(text), err)
		}
	}
	return head, ref, hasPath, nil
}

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
