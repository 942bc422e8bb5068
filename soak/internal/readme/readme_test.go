package readme

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestParts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "README.md")
	const page = "# Title\n\n<!-- a -->\nold\n<!-- /a -->\n\n<!-- b -->\n<!-- /b -->\nend\n"
	if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(Check(path, "a"), Write(path, "a", "new\nlines\n"), Write(path, "b", "other\n")); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	const want = "# Title\n\n<!-- a -->\nnew\nlines\n<!-- /a -->\n\n<!-- b -->\nother\n<!-- /b -->\nend\n"
	if string(got) != want || err != nil {
		t.Errorf("the page is now %q, %v", got, err)
	}
	if part, err := Part(string(got), "a"); part != "new\nlines\n" || err != nil {
		t.Errorf("the part is %q, %v", part, err)
	}
}

func TestNoPlace(t *testing.T) {
	for name, page := range map[string]string{
		"empty":         "",
		"not begun":     "\nx\n<!-- /a -->\n",
		"not ended":     "\n<!-- a -->\nx\n",
		"wrong order":   "\n<!-- /a -->\nx\n<!-- a -->\n",
		"twice":         "\n<!-- a -->\n<!-- /a -->\n\n<!-- a -->\n<!-- /a -->\n",
		"twice at once": "\n<!-- a -->\n<!-- /a -->\n<!-- a -->\n<!-- /a -->\n",
		"another name":  "\n<!-- b -->\n<!-- /b -->\n",
	} {
		path := filepath.Join(t.TempDir(), "README.md")
		if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Check(path, "a"); !errors.Is(err, ErrNoPlace) {
			t.Errorf("%s: check: %v", name, err)
		}
		if err := Write(path, "a", "x"); !errors.Is(err, ErrNoPlace) {
			t.Errorf("%s: write: %v", name, err)
		}
		if got, err := os.ReadFile(path); string(got) != page || err != nil {
			t.Errorf("%s: it is now %q, %v", name, got, err)
		}
	}
	if err := Check(filepath.Join(t.TempDir(), "none"), "a"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}
