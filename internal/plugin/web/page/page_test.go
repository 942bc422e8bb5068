package page

import (
	"io/fs"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/katbox/katbox/internal/testing/scripttest"
)

// most is how much the whole page may weigh, in bytes.
const most = 200_000

// texts returns the files of the page by their names.
func texts(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := fs.WalkDir(Files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := Files.ReadFile(name)
		found[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestPageIsLight(t *testing.T) {
	total := 0
	for name := range texts(t) {
		text, err := Sent(name)
		if err != nil {
			t.Fatal(err)
		}
		total += len(text)
	}
	t.Logf("the page weighs %d bytes", total)
	if total > most {
		t.Errorf("the page weighs %d bytes, and may weigh %d", total, most)
	}
}

// A line that is left out is a comment, and no part of a text that goes over several lines.
func TestCommentsAreLinesOfTheirOwn(t *testing.T) {
	for name, text := range texts(t) {
		if path.Ext(name) != ".js" {
			continue
		}
		sent, err := Sent(name)
		if err != nil || strings.Count(string(sent), "\n") != strings.Count(text, "\n") {
			t.Errorf("%s is sent with other lines: %v", name, err)
		}
		inText := false
		for i, line := range strings.Split(text, "\n") {
			if inText && strings.HasPrefix(strings.TrimSpace(line), "//") {
				t.Errorf("%s: line %d is a part of a text", name, i+1)
			}
			if !strings.HasPrefix(strings.TrimSpace(line), "//") && strings.Count(line, "`")%2 == 1 {
				inText = !inText
			}
		}
	}
}

// What a pod wrote must never be read as HTML or as a script, the server's Content-Security-Policy forbids
// inline styles and handlers, and the page asks no other host.
var unsafe = []string{
	"innerHTML", "outerHTML", "insertAdjacentHTML", "createContextualFragment", "parseFromString", "setHTML", "srcdoc", "document.write",
	"eval(", "new Function", "javascript:", " style=", `"style"`, " onclick=", " onload=", " onerror=", " oninput=", "document.cookie",
	"sessionStorage", "indexedDB", "http:", "https:", `"//`, `'//`, "(//",
}

// unsafeIn returns what is unsafe in a text. The namespace of SVG is no address.
func unsafeIn(text string) (found []string) {
	text = strings.ReplaceAll(text, "http://www.w3.org/2000/svg", "")
	for _, word := range unsafe {
		if strings.Contains(text, word) {
			found = append(found, word)
		}
	}
	return found
}

func TestPageIsSafe(t *testing.T) {
	for name, text := range texts(t) {
		if found := unsafeIn(text); len(found) > 0 {
			t.Errorf("%s has %q", name, found)
		}
	}
}

func TestUnsafeIsFound(t *testing.T) {
	for _, text := range []string{
		`node.innerHTML = name`, `node.insertAdjacentHTML("x", y)`, `document.write(x)`, `eval(x)`, `new Function("x")`, `<p style="x">`,
		`<a onclick="x">`, `node.setAttribute("style", x)`, `href="javascript:x"`, `fetch("https://example.com")`,
		`import "//cdn.example.com/x.js"`, `url(//x)`,
	} {
		if len(unsafeIn(text)) == 0 {
			t.Errorf("%s is not found", text)
		}
	}
}

var (
	imported  = regexp.MustCompile(`(?m)^import (?:.* from )?"([^"]+)";$`)
	loaded    = regexp.MustCompile(`(?:src|rel="(?:icon|stylesheet)" href)="([^"#]+)"`)
	preloaded = regexp.MustCompile(`rel="modulepreload" href="([^"]+)"`)
)

// Each file is reached from index.html, and each that is named is there. Modules are loaded beforehand, so
// that the browser need not find them one by one.
func TestPageIsWhole(t *testing.T) {
	files := texts(t)
	reached := map[string]bool{}
	var follow func(name string)
	follow = func(name string) {
		if reached[name] {
			return
		}
		reached[name] = true
		text, ok := files[name]
		if !ok {
			t.Errorf("%s is not in the page", name)
			return
		}
		pattern := imported
		if path.Ext(name) == ".html" {
			pattern = loaded
		}
		for _, match := range pattern.FindAllStringSubmatch(text, -1) {
			follow(strings.TrimPrefix(match[1], "./"))
		}
	}
	follow("index.html")
	early := map[string]bool{}
	for _, match := range preloaded.FindAllStringSubmatch(files["index.html"], -1) {
		early[match[1]] = true
	}
	for name := range files {
		if !reached[name] {
			t.Errorf("nothing loads %s", name)
		}
		if early[name] == (path.Ext(name) != ".js" || name == "main.js" || name == "start.js") {
			t.Errorf("%s is loaded beforehand: %v", name, early[name])
		}
	}
}

// TestScripts runs the tests of the scripts, as make page-check does, where there is a node that can.
func TestScripts(t *testing.T) { scripttest.Run(t, "test/*.test.js") }
