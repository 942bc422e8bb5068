package page

import (
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestGone: without a mouse, one gets from a volume that cannot be found among the retained ones to when and
// why it went, and how long it was kept of what was promised. A search is taken along.
func TestGone(t *testing.T) {
	c, p, v := openShowcase(t)
	v.look(1280, "light")
	v.sees(c.failedPod)
	tabTo(v, "the search field", `e.matches("input[type=search]")`)
	v.do(chromedp.KeyEvent("train-llm"))
	v.sees("None of")
	tabTo(v, "the list of volumes that are gone", `e.innerText === "Gone"`)
	v.press(kb.Enter)
	v.wait("its address is shown, with the search", `location.hash === "#/ci?view=gone&q=train-llm"`)
	for _, text := range []string{
		c.earlyPod, "bytes: the disk ran short of space", "1h of 12h", "20h ago", "One of them went before the end of what was promised",
	} {
		v.sees(text)
	}
	tabTo(v, "the rows", `e.closest("[data-index]")`)
	focusOn(v, c.earlyPod)
	v.press(kb.Enter)
	v.wait("a dialog has the focus", dialog+`?.contains(document.activeElement)`)
	for _, text := range []string{
		"What became of the volume of pod " + c.earlyPod, "1h of 12h promised", "0a1b2c3d-gone-1", "job/etl-orders",
	} {
		v.sees(text)
	}
	v.press(kb.Escape)
	v.wait("the dialog is closed", "!"+dialog)
	focusOn(v, c.earlyPod)
	v.do(chromedp.NavigateBack())
	v.sees("None of")

	v.goTo(place{hash: "#/ci?view=gone&q=by+jane", shows: "purged by jane: it had a token in its log"})
	if contains(v.text(), c.earlyPod) {
		t.Error("the search finds another volume")
	}
	v.goTo(place{hash: "#/ci?view=gone", shows: "4 volumes"})
	v.click("Kept")
	v.wait("those that were kept longest come first", `document.querySelector("[data-index='0']").innerText.includes("etl-orders-3")`)
	v.click("Kept")
	v.wait("the one that was kept shortest comes first",
		`document.querySelector("[data-index='0']").innerText.includes(`+quote(c.earlyPod)+`)`)
	v.wantQuiet(p.host)
}

// TestJustGone: a volume that was deleted in the page is among those that are gone after a refresh, and its
// old address leads to a text that says where to look.
func TestJustGone(t *testing.T) {
	c, _, v := openShowcase(t)
	v.goTo(place{hash: "#/ci?view=gone", shows: "4 volumes"})
	v.goTo(place{hash: "#/ci/" + c.failed, shows: "README"})
	code, _, _ := c.ask("token-of-alice", http.MethodDelete, katboxAPI+"/namespaces/ci/retainedvolumes/"+c.failed+"?reason=leaked")
	if code != http.StatusOK {
		t.Fatalf("the deletion answers %d", code)
	}
	v.goTo(place{hash: "#/ci", shows: "Retained volumes of ci"})
	v.goTo(place{hash: "#/ci/" + c.failed, shows: "the list of gone volumes says which"})
	v.goTo(place{hash: "#/ci?view=gone", shows: "Refresh"})
	v.click("Refresh")
	v.sees("5 volumes")
	v.sees("purged by alice: leaked")
}

// TestGoneRights: the list of what is gone needs the right to list, as the other does.
func TestGoneRights(t *testing.T) {
	c := newShowcase(t, "n4")
	p := startPlugin(t, c.kubeconfig("token-of-bob", ""))
	v := newVisitor(t)
	p.enter(v)
	v.goTo(place{hash: "#/ci?view=gone", shows: "The right to list retainedvolumes"})
	if contains(v.text(), "etl-orders") {
		t.Errorf("a stranger sees:\n%s", v.text())
	}
}
