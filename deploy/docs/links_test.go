package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/katbox/katbox/deploy/docs/pages"
)

const root = "../.."

// documents returns the paths of all Markdown files of the repository, from its root directory.
func documents(t *testing.T) []string {
	t.Helper()
	found, err := pages.All(root)
	if err != nil || len(found) < 20 {
		t.Fatalf("pages %q, %v", found, err)
	}
	return found
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestReadmeIsShort: what is longer has a page of its own.
func TestReadmeIsShort(t *testing.T) {
	if lines := strings.Count(read(t, "README.md"), "\n"); lines > 150 {
		t.Errorf("README.md has %d lines, and may have 150: move something to a page in deploy/docs", lines)
	}
}

var (
	codeBlock = regexp.MustCompile("(?ms)^```.*?^```$")
	codeSpan  = regexp.MustCompile("`[^`]*`")
	link      = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading   = regexp.MustCompile(`(?m)^#{1,6} +(.*)$`)
	noAnchor  = regexp.MustCompile(`[^\p{L}\p{N}\p{M}_ -]`)
	label     = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// TestLinksLeadSomewhere: each relative link of each page leads to a file, and to a heading in it if it has an anchor.
func TestLinksLeadSomewhere(t *testing.T) {
	count := 0
	for _, page := range documents(t) {
		text := codeSpan.ReplaceAllString(codeBlock.ReplaceAllString(read(t, page), ""), "")
		for _, found := range link.FindAllStringSubmatch(text, -1) {
			target, anchor, hasAnchor := strings.Cut(found[1], "#")
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			count++
			path := page
			if target != "" {
				path = filepath.Join(filepath.Dir(page), target)
			}
			if _, err := os.Stat(filepath.Join(root, path)); err != nil || strings.HasPrefix(path, "..") {
				t.Errorf("%s: the link %s leads to nothing: %v", page, found[1], err)
				continue
			}
			if hasAnchor && !anchors(t, path)[anchor] {
				t.Errorf("%s: the link %s leads to no heading of %s", page, found[1], path)
			}
		}
	}
	if count < 100 {
		t.Errorf("only %d links were found", count)
	}
}

// anchors returns those that GitHub gives to the headings of a page: in lower case, without punctuation, with dashes in the
// place of spaces, and with a number if it is there already.
func anchors(t *testing.T, page string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, found := range heading.FindAllStringSubmatch(codeBlock.ReplaceAllString(read(t, page), ""), -1) {
		text := strings.ReplaceAll(label.ReplaceAllString(found[1], "$1"), "`", "")
		name := strings.ReplaceAll(noAnchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(text)), ""), " ", "-")
		for unique, n := name, 1; ; unique, n = name+"-"+string(rune('0'+n)), n+1 {
			if !names[unique] {
				names[unique] = true
				break
			}
		}
	}
	return names
}
