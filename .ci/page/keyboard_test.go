package page

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestKeyboard: without a mouse, one finds a pod, opens a file, searches in it, downloads it, goes back, and
// deletes the volume. Where the focus is can be seen all the time.
func TestKeyboard(t *testing.T) {
	c, _, v := openShowcase(t)
	v.look(1280, "light")
	v.sees(c.failedPod)
	tabTo(v, "the search field", `e.matches("input[type=search]")`)
	v.do(chromedp.KeyEvent("x7k2p"))
	v.wait("one row is left", `document.querySelectorAll("[role=grid] [data-index]").length === 1`)
	v.press(kb.ArrowDown)
	focusOn(v, c.failedPod)
	v.press(kb.Enter)
	v.sees("README")
	arrowTo(v, "out/")
	v.press(kb.Enter)
	v.sees("report.json")
	arrowTo(v, "log.txt")
	v.press(kb.Enter)
	v.sees("reconcile")
	tabTo(v, "the search in the file", `e.matches("input[type=search]")`)
	v.do(chromedp.KeyEvent("giving up"))
	v.press(kb.Enter)
	v.wait("the found line is in sight", inSight("giving up"))
	tabTo(v, "the download", `/download/i.test(e.innerText || e.getAttribute("aria-label") || "")`)
	v.press(kb.Enter)
	if name, content := v.downloaded(0); name != "log.txt" || len(content) == 0 {
		t.Errorf("downloaded %q, %d bytes", name, len(content))
	}
	v.do(chromedp.NavigateBack())
	v.sees("report.json")
	focusOn(v, "log.txt")
	v.press(kb.Backspace)
	v.sees("README")
	tabTo(v, "deletion", `e.tagName === "BUTTON" && /delete/i.test(e.innerText || e.getAttribute("aria-label") || "")`)
	v.press(kb.Enter)
	v.wait("a dialog asks, and has the focus", dialog+`?.contains(document.activeElement)`)
	for range 12 { // the focus stays in it
		v.press(kb.Tab)
		if !ask[bool](v, `document.activeElement === document.body || `+dialog+`.contains(document.activeElement)`) {
			t.Error("the focus leaves the dialog")
		}
	}
	v.press(kb.Escape)
	v.wait("the dialog is closed, and the focus is back", "!"+dialog+` && /delete/i.test(document.activeElement.innerText)`)
	v.press(kb.Enter)
	v.wait("it asks again", dialog)
	tabTo(v, "the dialog's own button", `e.closest("dialog, [role=dialog], [role=alertdialog]") && /delete/i.test(e.innerText) &&
		!e.disabled`)
	v.press(kb.Enter)
	eventually(t, "the volume is gone", func() bool {
		return c.has(c.failed) == http.StatusNotFound
	})
	v.wait("the list is shown", `location.hash.split("?")[0] === "#/ci" && document.querySelector("[role=grid]")`)
}

// inSight is true if a text is between the top and the bottom of the window.
func inSight(text string) string {
	return fmt.Sprintf(`(() => {
		const walker = document.createTreeWalker(document.querySelector("main, [role=main]"), NodeFilter.SHOW_TEXT);
		while (walker.nextNode()) {
			const line = walker.currentNode.parentElement.closest("[role=row], [data-line], .line, li, div");
			if (!line?.textContent.includes(%s)) continue;
			const box = line.getBoundingClientRect();
			if (box.height > 0 && box.height < 200 && box.top >= 0 && box.bottom <= innerHeight) return true;
		}
		return false;
	})()`, quote(text))
}

// tabTo presses Tab until the element with the focus is the one that is looked for. The focus can be seen on
// each.
func tabTo(v *visitor, what, is string) {
	v.t.Helper()
	for range 80 {
		v.press(kb.Tab)
		if ask[bool](v, "((e) => !!("+is+"))(document.activeElement)") {
			return
		}
		if hidden := ask[string](v, focusHidden); hidden != "" {
			v.t.Errorf("on the way to %s the focus cannot be seen: %s", what, hidden)
		}
	}
	v.t.Fatalf("Tab does not lead to %s; the focus is on %s", what, ask[string](v, "document.activeElement.outerHTML"))
}

// focusHidden says on which element the focus cannot be seen.
const focusHidden = `((e) => {
	if (e === document.body || e === document.documentElement) return "";
	const style = getComputedStyle(e), box = e.getBoundingClientRect();
	const seen = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0 || style.boxShadow !== "none" ||
		e.closest(":focus-within") &&
		[e.parentElement, e.closest("[role=row]")].some((a) => a && (getComputedStyle(a).outlineStyle !== "none" ||
			getComputedStyle(a).boxShadow !== "none"));
	return seen && box.width > 0 && box.bottom > 0 && box.top < innerHeight ? "" : e.outerHTML.slice(0, 200);
})(document.activeElement)`

// arrowTo moves down the rows until the focus is on the one with this text.
func arrowTo(v *visitor, text string) {
	v.t.Helper()
	const row = `document.activeElement.closest("[data-index]")`
	if !ask[bool](v, "!!"+row) {
		tabTo(v, "the rows", `e.closest("[data-index]")`)
	}
	for range 60 {
		if ask[bool](v, `document.activeElement.innerText.trim() === `+quote(text)) {
			return
		}
		v.press(kb.ArrowDown)
	}
	v.t.Fatalf("the arrow does not lead to %s; the focus is on %s", text, ask[string](v, "document.activeElement.outerHTML"))
}

// focusOn waits until the focus is on a text.
func focusOn(v *visitor, text string) {
	v.t.Helper()
	v.wait("the focus is on "+text, `document.activeElement.innerText?.trim() === `+quote(text))
}
