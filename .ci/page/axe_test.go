package page

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"
)

// axe is axe-core, as npm has installed it.
func axe(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile("node_modules/axe-core/axe.min.js")
	if err != nil {
		t.Fatalf("%v; run the tests by \"make page-check\", which installs it", err)
	}
	return string(text)
}

// looks are the sizes and colours that the page is shown in.
var looks = []struct {
	name   string
	width  int64
	scheme string
}{
	{"wide-light", 1280, "light"}, {"wide-dark", 1280, "dark"}, {"middle-light", 820, "light"},
	{"narrow-light", 390, "light"}, {"narrow-dark", 390, "dark"}, {"narrowest-light", 360, "light"},
}

// TestAccessible: axe finds nothing wrong, wherever one is in the page, and nothing is wider than the
// screen.
func TestAccessible(t *testing.T) {
	library := axe(t)
	c, _, v := openShowcase(t)
	places := append(c.places(), place{name: "delete-dialog", hash: "#/ci/" + c.failed, shows: "README", then: func(v *visitor) {
		v.click("Delete…")
		v.wait("a dialog asks", dialog)
	}}, place{name: "pin-dialog", hash: "#/ci/" + c.failed, shows: "README", then: func(v *visitor) {
		v.press("\x1b")
		v.click("Pin…")
		v.sees("Others who find it still there")
	}}, place{name: "release-dialog", hash: "#/ci/" + c.failed, shows: "README", then: func(v *visitor) {
		v.press("\x1b")
		v.click("Release…")
		v.sees("The volume goes soon")
	}}, place{name: "namespaces", hash: "#/ci", shows: c.failedPod, then: func(v *visitor) {
		v.press("\x1b")
		v.choose()
	}}, place{name: "gone-dialog", hash: "#/ci?view=gone", shows: c.earlyPod, then: func(v *visitor) {
		v.press("\x1b") // closes the dialog before
		v.click(c.earlyPod)
		v.sees("What became of")
	}})
	for _, look := range looks {
		t.Run(look.name, func(t *testing.T) {
			v.t = t
			v.look(look.width, look.scheme)
			for _, at := range places {
				t.Run(at.name, func(t *testing.T) {
					v.t = t
					v.goTo(at)
					checkWithAxe(v, library)
					if wide := ask[float64](v, "document.documentElement.scrollWidth"); wide > float64(look.width) {
						t.Errorf("the page is %v wide", wide)
					}
				})
			}
			v.t = t
			v.press("\x1b")
		})
	}
}

// checkWithAxe reports what axe finds.
func checkWithAxe(v *visitor, library string) {
	v.t.Helper()
	for _, violation := range askAxe(v, library) {
		v.t.Errorf("axe: %s: %s: %q", violation.ID, violation.Help, violation.Nodes)
	}
}

// violation is something that axe finds wrong, and where.
type violation struct {
	ID, Help string
	Nodes    []string
}

// askAxe returns what axe finds in the page as it is.
func askAxe(v *visitor, library string) (violations []violation) {
	v.t.Helper()
	v.do(chromedp.Evaluate[chromedp.Void](library + "; undefined"))
	found := ask[string](v, `axe.run(document, {resultTypes: ["violations"]}).then((r) => JSON.stringify(r.violations.map((v) => ({
		id: v.id, help: v.help, nodes: v.nodes.slice(0, 5).map((n) => n.html + " | " + n.failureSummary)}))))`)
	must(v.t, json.Unmarshal([]byte(found), &violations))
	return violations
}

// TestAxe: it is asked in a way that it answers.
func TestAxe(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<title>x</title><p style="color: #ccc; background: #fff">pale</p><button></button>`)
	}))
	defer server.Close()
	v := newVisitor(t)
	must(t, v.visit(server.URL))
	v.sees("pale")
	found := askAxe(v, axe(t))
	for _, want := range []string{"color-contrast", "button-name", "html-has-lang"} {
		if !slices.ContainsFunc(found, func(f violation) bool { return f.ID == want }) {
			t.Errorf("axe does not find %s: %v", want, found)
		}
	}
}
