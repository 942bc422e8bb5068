package report

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/katbox/katbox/soak/internal/launch"
)

func TestImpossibleOutputsAreRefused(t *testing.T) {
	for _, test := range []struct {
		json, page, emptied string
		fine                bool
	}{
		{"here/result.json", "", "here", false},
		{"", "./here/deep/result.html", "here/", false},
		{"same", "./same", "", false},
		{"herein/result.json", "result.html", "here", true},
		{"", "", "here", true},
	} {
		if _, err := NewOutputs(test.json, test.page, test.emptied); errors.Is(err, launch.ErrUsage) == test.fine || (err == nil) != test.fine {
			t.Errorf("%+v: %v", test, err)
		}
	}
}

func TestUnwritableOutputsAreRefusedBeforeTheRun(t *testing.T) {
	dir := t.TempDir()
	for name, paths := range map[string][2]string{
		"--json":   {filepath.Join(dir, "missing", "result"), ""},
		"--report": {filepath.Join(dir, "fine"), dir},
	} {
		files, err := NewOutputs(paths[0], paths[1], "")
		if err != nil {
			t.Fatal(err)
		}
		if err := files.Open(); !errors.Is(err, launch.ErrUsage) || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want wrong usage of %s", err, name)
		}
		for _, out := range files {
			if out.file != nil {
				t.Errorf("%s is still open", out.flag)
			}
		}
	}
}

func TestOutputsAreSaved(t *testing.T) {
	dir := t.TempDir()
	data, page := filepath.Join(dir, "result.json"), filepath.Join(dir, "result.html")
	if err := os.WriteFile(data, []byte("of an earlier run"), 0o644); err != nil {
		t.Fatal(err)
	}
	files, err := NewOutputs(data, page, "")
	if err == nil {
		err = files.Open()
	}
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(data); err != nil || len(text) != 0 {
		t.Errorf("%q, %v: the earlier result could be taken for this one", text, err)
	}
	var said strings.Builder
	if err := files.Save(smallResult(t), &said); err != nil {
		t.Fatal(err)
	}
	files.Close() // has nothing left to do
	text, err := os.ReadFile(data)
	if err != nil {
		t.Fatal(err)
	}
	var got Result
	if err := json.Unmarshal(text, &got); err != nil || got.Seed != 7 {
		t.Errorf("the result is %.100s (%v)", text, err)
	}
	if text, err := os.ReadFile(page); err != nil || !strings.HasSuffix(string(text), "</html>\n") {
		t.Errorf("the page is not complete: %v, %.200s", err, text)
	}
	if said.String() != "--json "+data+" is written\n--report "+page+" is written\n" {
		t.Errorf("said %q", said.String())
	}
}

func TestOutputThatCannotBeWritten(t *testing.T) {
	const full = "/dev/full"
	fine := filepath.Join(t.TempDir(), "result.html")
	files, err := NewOutputs(full, fine, "")
	if err == nil {
		err = files.Open()
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := files.Save(smallResult(t), io.Discard); err == nil || !strings.Contains(err.Error(), "--json /dev/full is not complete") {
		t.Errorf("%v, want that the file is not complete", err)
	}
	if text, err := os.ReadFile(fine); err != nil || !strings.HasSuffix(string(text), "</html>\n") {
		t.Errorf("the other file is not complete either: %v, %.200s", err, text)
	}
}
