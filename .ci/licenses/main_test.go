package main

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

const mit = `Copyright (c) 2020 HOLDER

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files (the
"Software"), to deal in the Software without restriction, including without limitation the rights to use, copy, modify, merge, publish,
distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is furnished to do so, subject to
the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF
MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR
ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH
THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
`

// module returns a module with these files and one package.
func module(t *testing.T, name string, files map[string]string, dirs ...string) work {
	t.Helper()
	w := work{name: name, version: "v1.0.0", root: t.TempDir()}
	for path, content := range files {
		path = filepath.Join(w.root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range dirs {
		w.packages = append(w.packages, filepath.Join(w.root, dir))
	}
	return w
}

// TestTexts: every text beside a linked package or above it is in the file, once.
func TestTexts(t *testing.T) {
	of := func(holder string) string { return strings.Replace(mit, "HOLDER", holder, 1) }
	one := module(t, "example.com/one", map[string]string{
		"LICENSE": of("the first"), "NOTICE": "A notice of the first.", "forked/a/a.go": "", "forked/LICENSE.md": of("the forked"),
		"unused/COPYING": of("the unused"), "license.go": "package one", "unused/a.go": "",
	}, ".", "forked/a")
	same := module(t, "example.com/same", map[string]string{"LICENSE.txt": strings.ReplaceAll(of("the first"), "\n", "\r\n")}, ".")
	text, err := describe("program", []work{one, same})
	if err != nil {
		t.Fatal(err)
	}
	for want, count := range map[string]int{
		"The program program has":            1,
		"\n  example.com/one v1.0.0  MIT\n":  1,
		"\n  example.com/same v1.0.0  MIT\n": 1,
		"\nexample.com/one v1.0.0: LICENSE\nexample.com/same v1.0.0: LICENSE.txt\n\nCopyright (c) 2020 the first\n": 1,
		"Copyright (c) 2020 the first":                                                   1,
		"\nexample.com/one v1.0.0: NOTICE\n\nA notice of":                                1,
		"\nexample.com/one v1.0.0: forked/LICENSE.md\n\nCopyright (c) 2020 the forked\n": 1,
		"the unused":  0,
		"package one": 0,
	} {
		if got := strings.Count(string(text), want); got != count {
			t.Errorf("%q is there %d times, want %d, in\n%s", want, got, count, text)
		}
	}
	again, err := describe("program", []work{one, same})
	if err != nil || string(again) != string(text) {
		t.Errorf("the second time it is another file: %v", err)
	}
}

// TestRefused: a module whose license is missing, or of a kind that nobody has looked at, is named.
func TestRefused(t *testing.T) {
	gpl := "This program is free software: you can redistribute it and/or modify it under the terms of the GNU General Public License as " +
		"published by the Free Software Foundation, either version 3 of the License, or (at your option) any later version."
	for _, test := range []struct {
		files map[string]string
		want  string
	}{
		{map[string]string{"main.go": ""}, "example.com/m v1.0.0 has no license in /"},
		{map[string]string{"NOTICE": "There is a notice."}, "has no license"},
		{map[string]string{"LICENSE": "Ask me."}, "/LICENSE is of an unknown kind: 0% of it"},
		{map[string]string{"LICENSE": mit, "COPYING": gpl}, "/COPYING is GPL-3.0"},
		{map[string]string{"LICENSE": mit + strings.Repeat("But you must not use it on Sundays. ", 30)}, "is of an unknown kind: "},
	} {
		_, err := describe("program", []work{module(t, "example.com/m", test.files, ".")})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: %v, want %q", test.files, err, test.want)
		}
	}
}

// TestAnotherBuild: a program of other modules than the checkout's gets no licenses.
func TestAnotherBuild(t *testing.T) {
	works := []work{{name: "example.com/a", version: "v1.0.0"}, {name: "example.com/b", version: "v1.0.0"}}
	a, b := &debug.Module{Path: "example.com/a", Version: "v1.0.0"}, &debug.Module{Path: "example.com/b", Version: "v1.0.0"}
	for want, deps := range map[string][]*debug.Module{
		"":                             {a, {Path: "example.com/x", Replace: b}},
		"with example.com/b v1.1.0":    {a, {Path: "example.com/b", Version: "v1.1.0"}},
		"without example.com/b, which": {a},
		"with example.com/c v1.0.0":    {a, b, {Path: "example.com/c", Version: "v1.0.0"}},
	} {
		err := sameModules(&debug.BuildInfo{Deps: deps}, works)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestGo: Go itself has a license where this is run.
func TestGo(t *testing.T) {
	works, err := linked(&debug.BuildInfo{Path: "errors", GoVersion: runtime.Version()})
	if err != nil {
		t.Fatal(err)
	}
	text, err := describe("errors", works)
	if err != nil || !strings.Contains(string(text), "\n  Go "+runtime.Version()+"  BSD-3-Clause\n") {
		t.Errorf("%v in\n%.500s", err, text)
	}
}

// TestWrongUse: what is missing is said.
func TestWrongUse(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{
		{}, {"--nope"}, {"--license", "doc.go", "--output", dir}, {"--license", "doc.go", "--output", dir, "doc.go"},
	} {
		if err := run(args, io.Discard); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}
