package archive

import (
	"fmt"
	"path"
	"strings"
)

// patterns are those of Options.Exclude.
type patterns []string

func newPatterns(texts []string) (patterns, error) {
	for _, text := range texts {
		if _, err := path.Match(text, ""); err != nil {
			return nil, fmt.Errorf("exclude %q: %w", text, ErrBadPattern)
		}
	}
	return texts, nil
}

// match reports whether an entry is excluded.
func (p patterns) match(name string) bool {
	for _, pattern := range p {
		compared := name
		if !strings.Contains(pattern, "/") {
			compared = path.Base(name)
		}
		if ok, _ := path.Match(pattern, compared); ok {
			return true
		}
	}
	return false
}
