package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestUnwritableOutputsAreRefusedBeforeTheRun(t *testing.T) {
	dir := t.TempDir()
	missing := filepath.Join(dir, "missing", "result")
	for name, change := range map[string]func(*options){
		"--json":   func(o *options) { o.json = missing },
		"--report": func(o *options) { o.json, o.report = filepath.Join(dir, "fine"), dir },
	} {
		o := options{
			daemon: fakeBinary(t, "stillborn"), pods: 1, parallel: 1, volumes: 1, lifespan: time.Second, timeout: time.Minute,
			log: "daemon.log",
		}
		change(&o)
		var out bytes.Buffer
		_, err := run(t.Context(), o, &out)
		if !errors.Is(err, errUsage) || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want wrong usage of %s", err, name)
		}
		if strings.Contains(out.String(), "pods with") {
			t.Errorf("%s: the run began:\n%s", name, &out)
		}
	}
	for _, wrong := range [][]string{
		{"--dir", "here", "--json", "here/result.json"},
		{"--json", "same", "--report", "./same"},
	} {
		if _, err := parseOptions(wrong); !errors.Is(err, errUsage) {
			t.Errorf("%q: %v, want wrong usage", wrong, err)
		}
	}
}

// TestOutputsOfABrokenDaemon: who has violations needs the result most.
func TestOutputsOfABrokenDaemon(t *testing.T) {
	dir := t.TempDir()
	o := options{
		daemon: fakeBinary(t, "stillborn"), pods: 1, parallel: 1, volumes: 1, lifespan: time.Second, timeout: time.Minute,
		log: "daemon.log", json: filepath.Join(dir, "result.json"), report: filepath.Join(dir, "result.html"),
	}
	var out bytes.Buffer
	n, err := run(t.Context(), o, &out)
	if n != 1 || err != nil {
		t.Fatalf("%d violations, %v, want one", n, err)
	}
	text, err := os.ReadFile(o.json)
	if err != nil {
		t.Fatal(err)
	}
	var got result
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(got.Kept) })
	if got.Verdict != violated || len(got.Violations) != 1 || got.Violations[0].Promise != brokenDaemon || len(got.Samples) == 0 {
		t.Errorf("the result is %+v, want one violation, a daemon that did not start", got)
	}
	if there, err := exists(got.Kept); err != nil || !there {
		t.Errorf("kept is %q, which is there: %t, %v", got.Kept, there, err)
	}
	page, err := os.ReadFile(o.report)
	if err != nil || !strings.Contains(string(page), "<h1>1 violation</h1>") {
		t.Errorf("the page lacks its headline (%v):\n%.2000s", err, page)
	}
}

func TestOutputThatCannotBeWritten(t *testing.T) {
	const full = "/dev/full"
	if _, err := os.Stat(full); err != nil {
		t.Skip(err)
	}
	fine := filepath.Join(t.TempDir(), "result.html")
	files := options{json: full, report: fine}.outputs()
	if err := files.open(); err != nil {
		t.Fatal(err)
	}
	if err := files.save(sampleOutcome(), io.Discard); err == nil || !strings.Contains(err.Error(), "--json /dev/full is not complete") {
		t.Errorf("%v, want that the file is not complete", err)
	}
	if text, err := os.ReadFile(fine); err != nil || !strings.HasSuffix(string(text), "</html>\n") {
		t.Errorf("the other file is not complete either: %v, %.200s", err, text)
	}
}
