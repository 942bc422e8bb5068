// Package patterns knows what a .gitignore says, for the names in an archive.
package patterns

import (
	"errors"
	"fmt"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// ErrBad: a pattern is malformed.
var ErrBad = errors.New("not a valid pattern")

// Patterns exclude names. They mean what they do in a .gitignore at the top of the archive, except that a # is no comment, a space
// at the end is one, "./x" is "/x", and there are no classes such as [[:alpha:]]. They are for one goroutine.
type Patterns []pattern

// pattern is one of them.
type pattern struct {
	// glob is for doublestar, and matches the whole name in the archive.
	glob string
	// directories: it matches nothing else. include: what it matches is not excluded.
	directories, include bool
	matched              bool
}

// Parse returns the patterns with these texts. The error wraps [ErrBad].
func Parse(texts []string) (Patterns, error) {
	var all Patterns
	for _, text := range texts {
		p, err := newPattern(text)
		if err != nil {
			return nil, fmt.Errorf("exclude %q: %w", text, err)
		}
		all = append(all, p)
	}
	return all, nil
}

func newPattern(text string) (p pattern, err error) {
	glob := text
	glob, p.include = strings.CutPrefix(glob, "!")
	glob, p.directories = strings.CutSuffix(glob, "/")
	// A path of a shell, which git knows no meaning of.
	glob, fromHere := strings.CutPrefix(glob, "./")
	if !fromHere && !strings.Contains(glob, "/") {
		glob = "**/" + glob
	}
	glob = strings.TrimPrefix(glob, "/")
	if strings.HasSuffix(glob, "/**") {
		glob += "/*" // What is in a directory, and not the directory.
	}
	// Neither git nor a shell's glob has alternatives in a name that are not the shell's own. Classes are git's alone.
	p.glob = braces.Replace(glob)
	if !doublestar.ValidatePattern(p.glob) || strings.Contains(glob, "[[:") {
		return pattern{}, ErrBad
	}
	return p, nil
}

var braces = strings.NewReplacer(`\\`, `\\`, `\{`, `\{`, `\}`, `\}`, `{`, `\{`, `}`, `\}`)

// Match reports whether an entry is excluded: the last pattern that matches says that. What is in an excluded directory is
// excluded too, which the caller knows.
func (p Patterns) Match(name string, directory bool) (excluded bool) {
	for i := range p {
		if p[i].directories && !directory {
			continue
		}
		if ok, _ := doublestar.Match(p[i].glob, name); ok {
			p[i].matched, excluded = true, !p[i].include
		}
	}
	return excluded
}

// Unmatched are the places of those that have matched nothing.
func (p Patterns) Unmatched() (places []int) {
	for i := range p {
		if !p[i].matched {
			places = append(places, i)
		}
	}
	return places
}
