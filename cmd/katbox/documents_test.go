package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/katbox/katbox/deploy/docs/pages"
)

// TestDocumentsNameWhatIsThere: the tests that prove the promises exist, and so does each that any document names.
func TestDocumentsNameWhatIsThere(t *testing.T) {
	tests := testNames(t, "../..")
	named := regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z][A-Za-z0-9]*)`")
	if n := len(named.FindAllString(read(t, "deploy/docs/promises.md"), -1)); n < 10 {
		t.Errorf("deploy/docs/promises.md names only %d tests", n)
	}
	paths, err := pages.All("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		for _, name := range named.FindAllStringSubmatch(read(t, path), -1) {
			if !tests[name[1]] {
				t.Errorf("%s names %s, and there is no such test", path, name[1])
			}
		}
	}
}

// TestReferenceNamesEveryFlag of the daemon.
func TestReferenceNamesEveryFlag(t *testing.T) {
	_, section, _ := strings.Cut(read(t, "deploy/docs/reference.md"), "\n## The daemon\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var o options
	o.flags().VisitAll(func(flag *pflag.Flag) {
		if !strings.Contains(section, "`--"+flag.Name+"`") {
			t.Errorf("deploy/docs/reference.md does not name the flag --%s", flag.Name)
		}
	})
}

// read returns a file of the repository.
func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("../..", path))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// testNames returns the names of all tests below a directory.
func testNames(t *testing.T, root string) map[string]bool {
	t.Helper()
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)[A-Z]\w*)\(`)
	names := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, match := range declared.FindAllStringSubmatch(string(source), -1) {
			names[match[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
