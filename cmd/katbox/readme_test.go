package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestReadmeNamesWhatIsThere: the tests that prove the promises, and the flags, exist.
func TestReadmeNamesWhatIsThere(t *testing.T) {
	content, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	readme := string(content)
	tests := testNames(t, "../..")
	named := regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z][A-Za-z0-9]*)`").FindAllStringSubmatch(readme, -1)
	if len(named) < 10 {
		t.Errorf("the README names only %d tests", len(named))
	}
	for _, name := range named {
		if !tests[name[1]] {
			t.Errorf("the README names %s, and there is no such test", name[1])
		}
	}
	var o options
	o.flags().VisitAll(func(flag *pflag.Flag) {
		if !strings.Contains(readme, "`--"+flag.Name+"`") {
			t.Errorf("the README does not name the flag --%s", flag.Name)
		}
	})
}

// TestReadmeNamesEveryRoom: "Reading the source" names each directory of internal, and no path that is not there.
func TestReadmeNamesEveryRoom(t *testing.T) {
	content, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(content), "## Reading the source")
	for _, path := range regexp.MustCompile("`([a-z.]+/[a-z_./]+)`").FindAllStringSubmatch(section, -1) {
		if _, err := os.Stat("../../" + path[1]); err != nil {
			t.Errorf("the README names %s: %v", path[1], err)
		}
	}
	rooms, err := filepath.Glob("../../internal/*")
	if err != nil || len(rooms) < 10 {
		t.Fatalf("rooms %q, %v", rooms, err)
	}
	for _, room := range rooms {
		if !strings.Contains(section, "`internal/"+filepath.Base(room)+"`") {
			t.Errorf("the README does not name the room internal/%s", filepath.Base(room))
		}
	}
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
