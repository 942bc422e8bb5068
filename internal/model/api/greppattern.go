package api

import (
	"regexp"
	"regexp/syntax"
	"strings"
)

const (
	// mostPattern bounds the patterns of a search, in bytes.
	mostPattern = 1 << 10
	// mostProgram bounds the program that a pattern compiles to, in instructions: each may take part in each character.
	mostProgram = 2000
	// mostWildcards bounds the stars of a pattern of files.
	mostWildcards = 16
)

// Pattern is a compiled regular expression.
type Pattern struct {
	*regexp.Regexp
	// Size is about how many instructions its program has. A match takes at most as many steps for each byte.
	Size int
}

// Compile compiles the pattern. The error says what is wrong with it.
func (g Grep) Compile() (Pattern, *Error) {
	text := g.Pattern
	switch {
	case text == "":
		return Pattern{}, badGrep("grep", "the pattern is missing")
	case len(text) > mostPattern:
		return Pattern{}, badGrep("grep", "the pattern has %d bytes, and may have %d", len(text), mostPattern)
	case g.IgnoreCase:
		text = "(?i)" + text
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return Pattern{}, badGrep("grep", "the pattern %q is no regular expression of RE2: %v", g.Pattern, err)
	}
	// Repeats are still numbers here: the program would be as large as they say.
	size := sizeOf(tree)
	if size > mostProgram {
		return Pattern{}, badGrep("grep", "the pattern %q is too large once its repeats are written out; ask for less", g.Pattern)
	}
	compiled, err := regexp.Compile(text)
	if err != nil {
		return Pattern{}, badGrep("grep", "the pattern %q is no regular expression of RE2: %v", g.Pattern, err)
	}
	return Pattern{compiled, size}, nil
}

// sizeOf returns how many instructions a part of a pattern has at most, or a number beyond mostProgram.
func sizeOf(re *syntax.Regexp) int {
	size := 0
	for _, sub := range re.Sub {
		size = min(size+sizeOf(sub), mostProgram+1)
	}
	switch re.Op {
	case syntax.OpLiteral:
		size += len(re.Rune)
	case syntax.OpRepeat: // one that may be missing takes one more each time
		size = (size + 1) * max(re.Min+1, re.Max)
	case syntax.OpConcat:
	case syntax.OpAlternate:
		size += len(re.Sub)
	case syntax.OpCapture:
		size += 2
	default:
		size++
	}
	return min(size, mostProgram+1)
}

// ParseGlob returns an expression for the paths of files that a pattern selects: "*" stands for any text without a slash, "?"
// for one character that is no slash, and "**" for any text. A pattern without a slash selects by the name in any directory.
func ParseGlob(glob string) (*regexp.Regexp, *Error) {
	if len(glob) > mostPattern {
		return nil, badGrep("files", "the pattern of files has %d bytes, and may have %d", len(glob), mostPattern)
	}
	if strings.Count(glob, "*") > mostWildcards {
		return nil, badGrep("files", "the pattern of files %q has more than %d stars", glob, mostWildcards)
	}
	if !strings.Contains(glob, "/") {
		glob = "**/" + glob
	}
	glob = strings.TrimPrefix(glob, "/")
	var text strings.Builder
	text.WriteString("(?s)^")
	for glob != "" {
		switch {
		case strings.HasPrefix(glob, "**/"):
			text.WriteString("(?:.*/)?")
			glob = glob[3:]
			continue
		case strings.HasPrefix(glob, "**"):
			text.WriteString(".*")
			glob = glob[2:]
			continue
		case glob[0] == '*':
			text.WriteString("[^/]*")
		case glob[0] == '?':
			text.WriteString("[^/]")
		default:
			end := strings.IndexAny(glob, "*?")
			if end < 0 {
				end = len(glob)
			}
			text.WriteString(regexp.QuoteMeta(glob[:end]))
			glob = glob[end:]
			continue
		}
		glob = glob[1:]
	}
	compiled, err := regexp.Compile(text.String() + "$")
	if err != nil {
		return nil, badGrep("files", "the pattern of files %q cannot be read: %v", glob, err)
	}
	return compiled, nil
}
