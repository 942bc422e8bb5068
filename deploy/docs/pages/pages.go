// Package pages knows the documents of the repository: where they are, and which commands are in them. Tests run these.
package pages

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// All returns the paths of all Markdown files below the root directory of the repository, from there.
func All(root string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{".git", "bin", "node_modules"}, entry.Name()):
			return fs.SkipDir
		case !entry.IsDir() && strings.HasSuffix(path, ".md"):
			path, err = filepath.Rel(root, path)
			found = append(found, path)
		}
		return err
	})
	return found, err
}

// A Command is one that a page shows.
type Command struct{ Page, Text string }

// Commands returns the shell commands in the blocks of all pages below a root directory. See [In].
func Commands(root string) ([]Command, error) {
	paths, err := All(root)
	if err != nil {
		return nil, err
	}
	var found []Command
	for _, path := range paths {
		content, err := os.ReadFile(filepath.Join(root, path)) //nolint:gosec // a page of the repository
		if err != nil {
			return nil, err
		}
		for _, text := range In(string(content)) {
			found = append(found, Command{Page: path, Text: text})
		}
	}
	return found, nil
}

var (
	fence  = regexp.MustCompile("^ *```(\\w*)$")
	remark = regexp.MustCompile(`\s+# .*$`)
	inline = regexp.MustCompile(`^( {4}|\t)`)
)

// In returns the shell commands in the blocks of a page, each as one line, without its remark. In a block with lines that
// begin with "$ " these are the commands, and all else is what they print. Blocks of another language have none.
func In(page string) []string {
	var commands []string
	for _, block := range blocksOf(page) {
		var lines []string
		typed := false
		for _, line := range block {
			typed = typed || strings.HasPrefix(line, "$ ")
		}
		more := false
		for _, line := range block {
			text, isTyped := strings.CutPrefix(line, "$ ")
			if typed && !isTyped {
				continue
			}
			text = strings.TrimRight(remark.ReplaceAllString(text, ""), " ")
			if more {
				between := " "
				if strings.TrimSpace(text) == "done" {
					between = "; "
				}
				lines[len(lines)-1] += between + strings.TrimSpace(text)
			} else if strings.TrimSpace(text) != "" {
				lines = append(lines, text)
			}
			if strings.TrimSpace(text) != "" {
				more = goesOn(lines[len(lines)-1])
				lines[len(lines)-1] = strings.TrimSpace(strings.TrimSuffix(lines[len(lines)-1], `\`))
			}
		}
		commands = append(commands, lines...)
	}
	return commands
}

// goesOn reports whether a command is not at its end.
func goesOn(command string) bool {
	if strings.HasSuffix(command, `\`) || strings.HasSuffix(command, "|") {
		return true
	}
	return strings.HasPrefix(command, "for ") && !strings.HasSuffix(command, "; done")
}

// blocksOf returns the blocks of code of a page that may have commands: those with a fence without a language or with
// that of a shell, and those that are indented by four blanks.
func blocksOf(page string) [][]string {
	var blocks [][]string
	var block []string
	end := func() {
		if len(block) > 0 {
			blocks = append(blocks, block)
		}
		block = nil
	}
	language, fenced, before := "", false, ""
	for line := range strings.Lines(page) {
		line = strings.TrimRight(line, "\n")
		switch found := fence.FindStringSubmatch(line); {
		case found != nil:
			fenced, language = !fenced, found[1]
			end()
		case fenced:
			if language == "" || language == "console" || language == "sh" || language == "bash" {
				block = append(block, line)
			}
		case inline.MatchString(line) && (len(block) > 0 || before == ""):
			block = append(block, inline.ReplaceAllString(line, ""))
		default:
			end()
		}
		before = strings.TrimSpace(line)
	}
	end()
	return blocks
}
