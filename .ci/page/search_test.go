package page

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestSearchInFiles: from the list of a job's volumes one searches in its files, sees what was not searched, opens a file at the line
// that was found, and comes back to what was found.
func TestSearchInFiles(t *testing.T) {
	c, p, v := openShowcase(t)
	v.look(1280, "light")
	v.goTo(place{hash: "#/ci?q=job/nightly-29371080", shows: "1 shown"})
	v.click("Search in files")
	v.sees("Search in files of ci")
	v.wait("the job is chosen, and the pattern has the focus",
		`document.querySelector("[placeholder^=job]").value === "job/nightly-29371080" && document.activeElement.id === "search"`)
	v.do(chromedp.KeyEvent("GIVING up$"))
	v.press(kb.Enter)
	v.sees("Nothing was found")
	v.wait("the reader chooses another case", `((e) => { e.click(); return e.checked; })(document.querySelector(".asking [type=checkbox]"))`)
	v.click("Search")
	v.sees("1 line in 1 volume")
	v.sees("ERROR reconcile: 1 of 4096 orders differ, giving up")
	v.sees("1 of 4 nodes (n4")
	v.wait("the address leads there", `location.hash.startsWith("#/ci?view=search&q=GIVING+up") && location.hash.includes("flags=i")`)
	v.click(fmt.Sprintf("out/log.txt:%d", c.logLine+1))
	v.wait("the line is in sight", inSight("giving up"))
	v.wait("and picked", fmt.Sprintf(`location.hash.endsWith("out/log.txt?line=%d")`, c.logLine+1))
	// What was found is still there, and is not asked for again.
	ask[bool](v, `(window.before = performance.getEntriesByType("resource").length, true)`)
	v.do(chromedp.NavigateBack())
	v.sees("1 line in 1 volume")
	const entries = `performance.getEntriesByType("resource")`
	if again := ask[int](v, entries+`.slice(window.before).filter((e) => e.name.includes("grep=")).length`); again > 0 {
		t.Errorf("it is searched %d times more", again)
	}
	v.goTo(place{hash: "#/ci?view=search&q=x&of=nightly", shows: "Write it as job/NAME or pod/NAME"})
	v.wantQuiet(p.host)
}

// TestSearchIsCancelled: its request ends, and what was found stays.
func TestSearchIsCancelled(t *testing.T) {
	_, _, v := openShowcase(t)
	v.goTo(place{hash: "#/ci?view=search", shows: "Regular expression"})
	ask[bool](v, `(window.fetch = async (path, { signal }) => new Response(new ReadableStream({
		start(to) {
			to.enqueue(new TextEncoder().encode(
				'{"volume":{"metadata":{"namespace":"ci","name":"p.q3fd7k2m9c4a"},"spec":{"podName":"p"},"status":{}}}\n' +
				'{"found":{"file":"log","line":7,"text":"found by now"}}\n{"progress":{"files":3,"volumes":2,"bytes":0}}\n'));
			signal.addEventListener("abort", () => { window.aborted = true; to.error(signal.reason); });
		},
	})), true)`)
	ask[bool](v, `((e) => { e.focus(); e.value = "x"; e.form.requestSubmit(); return true; })(document.getElementById("search"))`)
	v.sees("found by now")
	v.sees("searching…")
	v.click("Cancel")
	v.sees("1 line in 1 volume, cancelled")
	v.sees("found by now")
	v.wait("the request has ended", "window.aborted")
	v.wait("there is nothing to cancel", `!document.getElementById("cancel-search").checkVisibility()`)
	v.wait("the focus is not lost with it", `document.activeElement.id === "search"`)
	// To leave the page ends a search, too.
	ask[bool](v, `(window.aborted = false, document.getElementById("search").form.requestSubmit(), true)`)
	v.sees("searching…")
	ask[bool](v, `(location.hash = "#/ci?view=gone", true)`)
	v.wait("the request has ended", "window.aborted")
}

// TestLinkToASearchOfTheArchive: who follows it sees what is asked, and decides.
func TestLinkToASearchOfTheArchive(t *testing.T) {
	_, _, v := openShowcase(t)
	v.goTo(place{hash: "#/ci?view=search&q=giving+up&flags=ia", shows: "It also reads what is in the archive"})
	const asked = `performance.getEntriesByType("resource").filter((e) => e.name.includes("grep=")).length`
	if n := ask[int](v, asked); n > 0 {
		t.Errorf("it is searched %d times before it is asked for", n)
	}
	v.click("Search")
	v.sees("1 line in 1 volume")
	// The same without the archive begins at once, also on a page that is open.
	v.goTo(place{hash: "#/ci?view=search&q=giving+up&flags=a", shows: "It also reads what is in the archive"})
	v.goTo(place{hash: "#/ci?view=search&q=giving+up&flags=i", shows: "1 line in 1 volume"})
}

// TestSearchInHostileFiles: whatever pods wrote, and however they called it, is shown as text.
func TestSearchInHostileFiles(t *testing.T) {
	b := newBeacon(t)
	s := newSite(t, map[string]func(*node){"n1": func(n *node) { putHostile(n, b) }})
	p := startPlugin(t, s.kubeconfig("token-of-alice", ""))
	v := newVisitor(t)
	p.enter(v)
	for _, pattern := range []string{".", "script", "onerror"} {
		v.goTo(place{hash: "#/ci?view=search&q=" + pattern, shows: "in 1 volume, searched"})
		v.sees("<script>")
		b.wantSilence(v, "what "+pattern+" finds")
	}
	odd := ask[[]string](v, `[...document.querySelectorAll(".found *")].filter((e) =>
		!["SECTION", "H2", "OL", "LI", "A", "BDI", "SPAN", "CODE", "svg", "path"].includes(e.tagName)).map((e) => e.outerHTML)`)
	if len(odd) > 0 {
		t.Errorf("elements: %q", odd)
	}
	links := ask[[]string](v, `[...document.querySelectorAll(".found a")]
		.map((a) => a.getAttribute("href")).filter((h) => !h.startsWith("#/ci/"))`)
	if len(links) > 0 {
		t.Errorf("links: %q", links)
	}
	v.wantQuiet(p.host)
}
