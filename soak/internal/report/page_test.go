package report

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/testing/scripttest"
	"github.com/katbox/katbox/soak/internal/history"
)

var (
	blocks = regexp.MustCompile(`(?s)<(style|script[^>]*)>(.*?)</(?:style|script)>`)
	policy = regexp.MustCompile(`Content-Security-Policy" content="([^"]*)"`)
)

// pageOf writes the page and checks what has to be so in every page: nothing is fetched from
// anywhere, and nothing runs but the page's own script. It returns the page and what it draws.
func pageOf(t *testing.T, x *Result) (string, pageData) {
	t.Helper()
	var out bytes.Buffer
	if err := x.Page(&out); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	found := blocks.FindAllStringSubmatch(text, -1)
	if len(found) != 3 || found[0][1] != "style" ||
		found[1][1] != `script type="application/json" id="run"` || found[2][1] != `script type="module"` {
		t.Fatalf("the page has other blocks than style, data and script: %.300q", found)
	}
	want := "default-src 'none'; base-uri 'none'; form-action 'none'; style-src " + hashOf([]byte(found[0][2])) +
		"; script-src " + hashOf([]byte(found[2][2]))
	if got := policy.FindStringSubmatch(text); got == nil || html.UnescapeString(got[1]) != want {
		t.Errorf("the policy is %q, want %s", got, want)
	}
	if strings.ContainsAny(found[1][2], "<>&") {
		t.Error("the data could end its block")
	}
	if strings.Contains(text, "ZgotmplZ") {
		t.Error("the template refused a value")
	}
	var data pageData
	if err := json.Unmarshal([]byte(found[1][2]), &data); err != nil {
		t.Fatalf("the data cannot be read: %v", err)
	}
	return text, data
}

// TestPageHasWhatTheTerminalSays: the page makes no sums and no judgements of its own.
func TestPageHasWhatTheTerminalSays(t *testing.T) {
	x := smallResult(t)
	_, data := pageOf(t, x)
	if data.Headline != "1 violation" || !reflect.DeepEqual(data.Calls, x.callRows()) || !reflect.DeepEqual(data.Groups, x.groups()) {
		t.Errorf("%+v, want the headline, the calls and the groups of the terminal", data)
	}
	if len(data.Stories) != 1 || data.Stories[0].What != "<b>not there</b>" || data.Stories[0].Clock != "00:00:01.250" || data.More != 0 {
		t.Errorf("stories %+v, want that of the violation", data.Stories)
	}
	if !reflect.DeepEqual(data.Run.Samples, x.Samples) || !reflect.DeepEqual(data.Run.FaultSpans, x.FaultSpans) ||
		len(data.Run.Violations) > 0 {
		t.Errorf("%+v, want the result without its violations", data.Run)
	}
	if len(data.AtOnce) != 1 || data.AtOnce[0] != "clock-step" {
		t.Errorf("%v are over at once, want the step of the clock", data.AtOnce)
	}
	if len(x.Violations) != 1 {
		t.Error("the result has lost its violations")
	}
}

// evil is a text that would do something if it was taken for HTML.
const evil = `</script></pre></style><script>document.title = "broken into"</script>` +
	`<img src="x" onerror="document.title='broken into'"><!--<script>`

// evilResult has it wherever a text may come from a volume, a driver or a file.
func evilResult(t *testing.T) *Result {
	x := smallResult(t)
	x.Unproven, x.Command, x.Machine, x.Kept, x.Workload.Name, x.Workload.YAML = evil, evil, evil, evil, evil, evil
	x.Violations = append(x.Violations, violation{Promise: evil, What: evil, Volume: evil, Pod: evil, Story: []string{evil}})
	x.Methods[3].Codes[evil], x.Methods[3].Method = 1, evil
	x.Promises[0].Promise = history.Promise(evil)
	x.Faults[0].Kind, x.FaultSpans[0].Kind, x.FaultSpans[0].What = evil, evil, evil
	return x
}

func TestPageTrustsNoText(t *testing.T) {
	text, data := pageOf(t, evilResult(t))
	if strings.Contains(text, "<img") || strings.Contains(text, "<!--") {
		t.Error("a text became an element")
	}
	if got := data.Stories[1].What; got != evil {
		t.Errorf("the text %q came to the page as %q", evil, got)
	}
	for _, name := range append([]string{"page.html", "style.css"}, scripts...) {
		part, err := pageFiles.ReadFile("page/" + name)
		if err != nil {
			t.Fatal(err)
		}
		without := strings.ReplaceAll(string(part), "http://www.w3.org/2000/svg", "")
		for _, word := range []string{
			"innerHTML", "outerHTML", "insertAdjacentHTML", "createContextualFragment", "parseFromString", "setHTML", "document.write", "eval(",
			"Function(", "javascript:", " style=", `"style"`, " onclick", "fetch(", "http:", "https:", "url(", "@import", `"//`,
		} {
			if strings.Contains(without, word) {
				t.Errorf("%s has %q", name, word)
			}
		}
	}
}

// TestPageOfADay: a page must stay light, however long the run was.
func TestPageOfADay(t *testing.T) {
	text, data := pageOf(t, generated(24*3600, true))
	if got := len(text); got > 8<<20 {
		t.Errorf("the page has %d bytes, want less than 8 MiB", got)
	}
	if len(data.Run.Samples) < 10_000 {
		t.Errorf("%d samples of a day", len(data.Run.Samples))
	}
}

// drawnBy is the page as a browser has it after its script ran, without data, style and script.
func drawnBy(t *testing.T, browser string, x *Result) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "page.html")
	text, _ := pageOf(t, x)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	// Files and no pipes, and an end for its whole group: processes may outlive the browser for a moment.
	shown, err := os.Create(filepath.Join(dir, "shown.html"))
	if err != nil {
		t.Fatal(err)
	}
	defer shown.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	show := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--disable-background-networking", "--user-data-dir="+filepath.Join(dir, "profile"), "--virtual-time-budget=5000",
		"--window-size=900,800", "--dump-dom", "file://"+file)
	show.Stdout, show.SysProcAttr = shown, &syscall.SysProcAttr{Setpgid: true}
	err = show.Run()
	if show.Process != nil {
		_ = syscall.Kill(-show.Process.Pid, syscall.SIGKILL) // it may have ended
	}
	dom, errRead := os.ReadFile(shown.Name())
	if err := errors.Join(err, errRead); err != nil {
		t.Fatalf("%s: %v", browser, err)
	}
	return blocks.ReplaceAllString(string(dom), "")
}

// TestPageInABrowser looks at what the script makes of runs of all sorts. "make check" bounds the address space of tests, of
// which a browser reserves more.
func TestPageInABrowser(t *testing.T) {
	if os.Getenv("KATBOX_PAGE_CHECK") == "" {
		t.Skip("this machine lacks chromium: make page-check has it")
	}
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal(err)
	}
	text := func(s string) string {
		return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
	}
	for name, test := range map[string]struct {
		x           *Result
		want, never []string
		charts      int
	}{
		"broken and hostile": {evilResult(t), []string{
			`<header class="violated"><h1>1 violation</h1>`, "<strong>" + text(evil) + "</strong>, broken once", "end: " + text(evil),
			text("<b>not there</b>"), text("csi-<script>alert(1)</script>"), "<pre>" + text(evil) + "</pre>", "<td>with bad input</td>",
			"<td>daemon-kill</td><td>1 of 1</td>", "expired in time<b>4</b>", "until the end", "by 1h0m0s",
		}, []string{"<b>not there", "<img", "<title>broken into", "does not run here"},
			// Deadlines, violations and faults, their times, and what two samples have with the times of each group.
			1 + 4 + 1 + 10 + 4},
		"over before it began": {emptyResult(interrupted{}, nil), []string{
			`<header class="unproven">`, "end: interrupted", "not broken so far", "soak --seed 0",
		},
			[]string{"What happened", "0 violations", ">kept<", "one by one", "The workload<", "<h2>Deadlines", "does not run here"}, 4},
		"long": {generated(600, true), []string{"3 violations", "by -30m0s", "headroom begins"},
			[]string{"NaN", "Infinity", "undefined"}, 1 + 7 + 1 + 12 + 4},
	} {
		t.Run(name, func(t *testing.T) {
			drawn := drawnBy(t, browser, test.x)
			for _, want := range test.want {
				if !strings.Contains(drawn, want) {
					t.Errorf("the page lacks %q", want)
				}
			}
			for _, never := range test.never {
				if strings.Contains(drawn, never) {
					t.Errorf("the page has %q", never)
				}
			}
			if got := strings.Count(drawn, "<svg"); got != test.charts {
				t.Errorf("%d charts, want %d", got, test.charts)
			}
		})
	}
}

// TestScripts runs the tests of the scripts, where there is a node that can.
func TestScripts(t *testing.T) { scripttest.Run(t, "page/test/*.test.js") }
