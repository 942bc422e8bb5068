package page

import (
	"fmt"
	"net/url"
	"testing"
)

// place is something that the page can show.
type place struct {
	name, hash string
	// shows is a text that is there when it has loaded.
	shows string
	// then is what is done after that.
	then func(*visitor)
}

// goTo shows a place.
func (v *visitor) goTo(p place) {
	v.t.Helper()
	ask[bool](v, "(location.hash = "+quote(p.hash)+", true)")
	v.sees(p.shows)
	if p.then != nil {
		p.then(v)
	}
}

// click clicks on a button or a link with that text.
func (v *visitor) click(text string) {
	v.t.Helper()
	v.wait("there is something to press that says "+text, fmt.Sprintf(`(() => {
		const found = [...document.querySelectorAll("button, a, [role=button], [role=menuitem], [role=tab]")].find((e) =>
			e.checkVisibility() &&
			(e.innerText.trim() === %[1]s || e.getAttribute("aria-label") === %[1]s || e.title === %[1]s));
		found?.click();
		return found;
	})()`, quote(text)))
}

// dialog is the dialog that is open, in the words of a script.
const dialog = `document.querySelector("dialog[open], [role=dialog]:popover-open, [role=alertdialog]")`

// confirm presses the button of a dialog that deletes.
func (v *visitor) confirm() {
	v.t.Helper()
	v.wait("the dialog's button is pressed", `(() => {
		const found = [...`+dialog+`?.querySelectorAll("button") ?? []].find((b) => /delete/i.test(b.innerText) && !b.disabled);
		found?.click();
		return found;
	})()`)
}

// places are all kinds of places of the showcase.
func (c *showcase) places() []place {
	volume := "#/ci/" + c.failed
	return []place{
		{name: "list", hash: "#/ci", shows: c.failedPod},
		{name: "list-searched", hash: "#/ci?q=nightly", shows: c.failedPod},
		{name: "list-grouped", hash: "#/ci?group=owner", shows: "job/nightly-29371080"},
		{name: "list-empty", hash: "#/ci?q=nothing-is-called-so", shows: "None of"},
		{name: "gone", hash: "#/ci?view=gone", shows: c.earlyPod},
		{name: "gone-grouped", hash: "#/ci?view=gone&group=owner", shows: "job/etl-orders"},
		{name: "gone-searched", hash: "#/ci?view=gone&q=short+of+space", shows: c.earlyPod},
		{name: "gone-empty", hash: "#/ci?view=gone&q=nothing-is-called-so", shows: "None of"},
		{name: "search", hash: "#/ci?view=search&q=giving+up", shows: "1 line in 1 volume"},
		{name: "search-empty", hash: "#/ci?view=search", shows: "Regular expression"},
		{name: "search-refused", hash: "#/ci?view=search&q=(", shows: "This cannot be searched for"},
		{name: "volume", hash: volume, shows: "README"},
		{name: "directory", hash: volume + "/out", shows: "report.json"},
		{name: "directory-empty", hash: volume + "/empty", shows: "empty"},
		{name: "text", hash: fmt.Sprintf("%s/out/log.txt?line=%d-%d", volume, c.logLine, c.logLine+1), shows: "giving up"},
		{name: "hex", hash: volume + "/work/orders/81723.bin", shows: "4f 52 44 45 52"},
		{name: "image", hash: volume + "/out/screenshots/ledger.png", shows: "ledger.png", then: func(v *visitor) {
			v.wait("the image is there", `[...document.images].some((i) => i.complete && i.naturalWidth === 640)`)
		}},
		{name: "symlink", hash: volume + "/latest.log", shows: "out/log.txt"},
		{name: "no-such-volume", hash: "#/ci/gone-29000000-aaaaa.q3fd7k2m9c4a", shows: "gone-29000000-aaaaa"},
		{name: "no-such-file", hash: volume + "/missing.txt", shows: "missing.txt"},
		{name: "forbidden", hash: "#/other", shows: "other"},
	}
}

// refOf writes a path as the API takes it.
func refOf(name string) string { return url.PathEscape(name) }

// openShowcase opens the page of the showcase.
func openShowcase(t testing.TB) (*showcase, *plugin, *visitor) {
	t.Helper()
	c := newShowcase(t, "n4")
	p := startPlugin(t, c.kubeconfig("token-of-alice", ""))
	v := newVisitor(t)
	p.enter(v)
	return c, p, v
}
