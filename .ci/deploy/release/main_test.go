package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSums: a file that is not in checksums.txt, or has another content, is refused.
func TestSums(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	refused := func(want string) {
		t.Helper()
		if _, err := checkSums(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	refused("checksums.txt")
	write("a", "")
	write("checksums.txt", empty+"  a\n")
	if names, err := checkSums(dir); err != nil || len(names) != 1 || names[0] != "a" {
		t.Errorf("%q, %v", names, err)
	}
	write("b", "")
	refused("b is not in checksums.txt")
	write("checksums.txt", empty+"  a\n"+empty+"  b\n")
	write("b", "b")
	refused("b has the checksum ")
	write("checksums.txt", empty+" a\n")
	refused("has the line")
}
