package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

const messagesFile = "deploy/docs/messages.md"

var errNoKind = errors.New("it has messages, and is of no kind: add it to one in deploy/docs/kinds.go, or to noUsers with the reason")

// kindOf returns the kind whose from is the longest one that is a file or its directory, and nil if there is none.
func kindOf(file string) *kind {
	var best *kind
	longest := ""
	for i := range kinds {
		for _, from := range kinds[i].from {
			if (from == file || from == filepath.Dir(file)) && len(from) > len(longest) {
				best, longest = &kinds[i], from
			}
		}
	}
	return best
}

// messagesByKind returns the texts of each kind, sorted, each once, of the source below a root directory.
func messagesByKind(root string) (map[*kind][]string, error) {
	found := map[*kind][]string{}
	for _, top := range []string{"actors", "cmd", "internal", "messages"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.IsDir() {
				return err
			}
			dir, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			if noUsers[dir] != "" {
				return fs.SkipDir
			}
			texts, err := messagesOf(root, dir)
			for _, m := range texts {
				k := kindOf(m.file)
				if k == nil {
					return fmt.Errorf("%s: %w", m, errNoKind)
				}
				if !slices.Contains(found[k], m.text) {
					found[k] = append(found[k], m.text)
				}
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	for _, texts := range found {
		slices.Sort(texts)
	}
	return found, nil
}

const messagesHead = `# All messages

Each text of the source that may be in a message that you meet, by what it is about. Search this page for some words of your message.
A message is often several of these, one behind the other, with colons between them: the last one says most. Behind that is what the
kernel, the API server or the array has said. … stands for what is another each time.

This page is made by ` + "`make docs`" + ` from the source, and a test compares: a text of three words or more is here, unless it is only
logged, is the usage of a command, or is in a package that no user meets. Those packages, and the reason, are in
` + "`deploy/docs/kinds.go`" + `. [Troubleshooting](troubleshooting.md) has the usual ones, with more words.

`

// messagesPage is the page with all messages.
func messagesPage(root string) (string, error) {
	found, err := messagesByKind(root)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(messagesHead)
	for i := range kinds {
		fmt.Fprintf(&b, "- [%s](#%s)\n", kinds[i].title, anchorOf(kinds[i].title))
	}
	for i := range kinds {
		k := &kinds[i]
		fmt.Fprintf(&b, "\n## %s\n\nWhere you meet them: %s.\n\n**Cause:** %s\n\n**What to do:** %s\n\n", k.title, k.met, k.cause, k.cure)
		for _, text := range found[k] {
			fmt.Fprintf(&b, "- %s\n", code(text))
		}
	}
	return b.String(), nil
}

// code is a text as Markdown shows it unchanged.
func code(text string) string {
	if strings.Contains(text, "`") {
		return "`` " + text + " ``"
	}
	return "`" + text + "`"
}

// anchorOf is the anchor of a heading without punctuation that GitHub would keep.
func anchorOf(title string) string {
	return strings.ReplaceAll(strings.Map(func(r rune) rune {
		if r == ',' || r == '\'' || r == '.' {
			return -1
		}
		return r
	}, strings.ToLower(title)), " ", "-")
}
