package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// allowed are the kinds of licenses that may be linked into a program: they ask for their text and the
// notices of the authors, and for nothing else. A further kind is a decision, not a detail.
var allowed = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"}

// least is the share of a license, in percent, that has to be the text of a known one. The rest is copyright
// notices.
const least = 75

var (
	license = regexp.MustCompile(`^(?i:licen[cs]e|copying)([-.].*)?$`)
	notice  = regexp.MustCompile(`^(?i:notice|patents|copyright)([-.].*)?$`)
	source  = regexp.MustCompile(`\.(go|sh|s|c|h|py|json|tmpl)$`)
)

// terms is one text, and which files of which works it stands in.
type terms struct {
	files []string
	text  []byte
}

// describe returns the file about a program's works.
func describe(program string, works []work) ([]byte, error) {
	var table bytes.Buffer
	var all []terms
	for _, w := range works {
		files, err := w.files()
		if err != nil {
			return nil, err
		}
		kinds := map[string]bool{}
		for _, name := range files {
			text, err := os.ReadFile(filepath.Join(w.root, name))
			if err != nil {
				return nil, err
			}
			if license.MatchString(filepath.Base(name)) {
				if err := w.addKinds(kinds, name, text); err != nil {
					return nil, err
				}
			}
			all = add(all, w.name+" "+w.version+": "+filepath.ToSlash(name), text)
		}
		if len(kinds) == 0 {
			return nil, fmt.Errorf("%s %s has no license in %s", w.name, w.version, w.root)
		}
		fmt.Fprintf(&table, "  %s %s  %s\n", w.name, w.version, strings.Join(sorted(kinds), ", "))
	}

	var file bytes.Buffer
	fmt.Fprintf(&file, "The program %s has parts of these works. Their licenses and notices follow.\n\n", program)
	file.Write(table.Bytes())
	for _, t := range all {
		fmt.Fprintf(&file, "\n%s\n%s\n\n", strings.Repeat("=", 80), strings.Join(t.files, "\n"))
		file.Write(t.text)
		file.WriteByte('\n')
	}
	return file.Bytes(), nil
}

// files returns the names of the license files beside a linked package or above it, within the work.
func (w work) files() ([]string, error) {
	seen := map[string]bool{}
	var names []string
	for _, dir := range w.packages {
		for ; !seen[dir]; dir = filepath.Dir(dir) {
			inside, err := filepath.Rel(w.root, dir)
			if err != nil || inside == ".." || strings.HasPrefix(inside, "../") {
				break
			}
			seen[dir] = true
			entries, err := os.ReadDir(dir)
			if err != nil {
				return nil, err
			}
			for _, entry := range entries {
				name := entry.Name()
				if entry.Type().IsRegular() && !source.MatchString(name) && (license.MatchString(name) || notice.MatchString(name)) {
					names = append(names, filepath.Join(inside, name))
				}
			}
		}
	}
	slices.Sort(names)
	return names, nil
}

// addKinds adds the kinds of the licenses in a text, and fails if one is not allowed.
func (w work) addKinds(kinds map[string]bool, name string, text []byte) error {
	found := licensecheck.Scan(text)
	if found.Percent < least || len(found.Match) == 0 {
		return fmt.Errorf("%s %s: %s is of an unknown kind: %.0f%% of it is a known license",
			w.name, w.version, filepath.Join(w.root, name), found.Percent)
	}
	for _, match := range found.Match {
		if !slices.Contains(allowed, match.ID) {
			return fmt.Errorf("%s %s: %s is %s; allowed are %s", w.name, w.version, filepath.Join(w.root, name), match.ID,
				strings.Join(allowed, ", "))
		}
		kinds[match.ID] = true
	}
	return nil
}

// add adds a file's text, or the file to the same text.
func add(all []terms, file string, text []byte) []terms {
	text = bytes.TrimSpace(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")))
	for i := range all {
		if bytes.Equal(all[i].text, text) {
			all[i].files = append(all[i].files, file)
			return all
		}
	}
	return append(all, terms{[]string{file}, text})
}

func sorted(set map[string]bool) []string {
	var names []string
	for name := range set {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
