package page

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"github.com/katbox/katbox/internal/model/volume"
)

// The widths of windows that the page is made for: a telephone's, half a screen's, and a whole one's.
var widths = []int64{390, 820, 1280}

// nodeNames differ at their end, as those of clouds do.
var nodeNames = []string{"gke-production-europe-default-pool-7f3a9c1e-x7k2", "gke-production-europe-default-pool-7f3a9c1e-q9bd"}

// crowded is a cluster whose names are long, with each outcome and each decision, and with what is almost over.
type crowded struct {
	*site
	// deep is a volume of the pod deepPod, which has a deep directory with long names.
	deep, deepPod, deepRef string
}

func newCrowded(t testing.TB) *crowded {
	t.Helper()
	c := &crowded{deepPod: "reconciliation-of-all-orders-of-the-last-quarter-29371080-x7k2p"}
	const step = "a-directory-with-a-long-name-as-build-systems-make-them-for-each-target-and-configuration"
	c.deepRef = "out/" + step + "/" + step + "/deeper/still-deeper/x"
	outcomes := []volume.Outcome{volume.Failed, volume.Succeeded, volume.Stopped, volume.OutcomeUnknown}
	fill := func(n *node) {
		for i := range 12 {
			name, path := n.put(func(d *volume.Description) {
				d.Record.PodName = fmt.Sprintf("import-of-everything-that-there-is-%08d-%05d", 29371080+i/4, i)
				owned(d, "Job", fmt.Sprintf("import-of-everything-that-there-is-%08d", 29371080+i/4))
				d.Record.Outcome = outcomes[i%4]
				aged(d, 1.8, 24, 1016<<20, 4000)
				switch {
				case i == 0 && n.name == nodeNames[0]:
					d.Record.PodName = c.deepPod
				case i%4 == 1:
					d.Early, d.Deadline = true, time.Now().Add(119*time.Minute)
				case i == 2:
					d.Record.Hold = volume.Hold{Kind: volume.Pinned, For: 60 * time.Hour, By: "kim", Why: "post-mortem"}
					d.Deadline = d.Record.Until()
				case i == 3:
					d.Record.Hold = volume.Hold{Kind: volume.Released, For: 4 * time.Hour, By: "kim"}
					d.Deadline = d.Record.Until()
				}
			})
			if i == 0 && n.name == nodeNames[0] {
				c.deep = name
				writeDeep(t, path, c.deepRef)
			}
		}
		d := n.volumes[0]
		aged(&d, 42, 12, 1016<<20, 4000)
		n.bury(d, volume.Tombstone{Gone: hoursAgo(2), Reason: volume.Expired})
	}
	c.site = newSite(t, map[string]func(*node){nodeNames[0]: fill, nodeNames[1]: fill})
	return c
}

// openCrowded opens the page of it as one user.
func openCrowded(t testing.TB, token string) (*crowded, *plugin, *visitor) {
	t.Helper()
	c := newCrowded(t)
	p := startPlugin(t, c.kubeconfig(token, ""))
	v := newVisitor(t)
	p.enter(v)
	return c, p, v
}

// choose opens the chooser of namespaces.
func (v *visitor) choose() {
	v.t.Helper()
	ask[bool](v, `(document.getElementById("namespace").click(), true)`)
	v.wait("the chooser has the focus", `document.activeElement.id === "choose-search"`)
}

// cut are the kinds of cells of which a part cannot be seen.
const cutCells = `[...new Set([...document.querySelectorAll(".rows .cell")].filter((c) => c.checkVisibility() &&
	(c.scrollWidth > c.clientWidth + 1 || [...c.querySelectorAll(".tail-of")].some((e) => e.checkVisibility() &&
	e.getBoundingClientRect().right > c.getBoundingClientRect().right + 1))).map((c) => c.className))]`

// TestNothingIsCut: at each width the outcome leads each row, with a picture and a color, and what there is room for
// is shown in full; of long names the middle goes.
func TestNothingIsCut(t *testing.T) {
	_, _, v := openCrowded(t, "token-of-alice")
	v.goTo(place{hash: "#/ci", shows: "m or less"})
	for _, width := range widths {
		v.look(width, "light")
		for _, at := range []place{
			{name: "list", hash: "#/ci", shows: "24 volumes"}, {name: "groups", hash: "#/ci?group=owner", shows: "4 volumes"},
			{name: "gone", hash: "#/ci?view=gone", shows: "1d16h, promised 12h"},
		} {
			v.goTo(at)
			v.settle()
			where := fmt.Sprintf("%s at %d", at.name, width)
			if cut := ask[[]string](v, cutCells); len(cut) > 0 {
				t.Errorf("%s: there is no room for %q", where, cut)
			}
			led := ask[[]string](v, `[...document.querySelectorAll(".rows .row")].map((r) => {
				const first = [...r.children].find((c) => c.checkVisibility());
				const mark = first.querySelector(".mark svg"), box = mark?.getBoundingClientRect();
				return first.matches(".outcome") && box?.width > 8 && box.right <= first.getBoundingClientRect().right ? "" : r.innerText;
			}).filter(Boolean)`)
			if len(led) > 0 {
				t.Errorf("%s: the outcome does not lead in %q", where, led)
			}
		}
		v.goTo(place{hash: "#/ci", shows: "24 volumes"})
		v.settle()
		colors := ask[[]string](v, `["failed", "succeeded", "stopped", "unknown"].map((k) => {
			const mark = document.querySelector(".rows .mark." + k);
			return getComputedStyle(mark).color + " " + mark.querySelector("path").getAttribute("d");
		})`)
		slices.Sort(colors)
		if len(slices.Compact(colors)) != 4 {
			t.Errorf("at %d two outcomes look alike: %q", width, colors)
		}
		for _, text := range []string{", pinned", ", released", "or less"} {
			v.sees(text)
		}
	}
	// At the largest width each row ends with what tells its node from others.
	v.sees("7f3a9c1e-x7k2")
	ends := ask[[]string](v, `[...document.querySelectorAll(".cell.node .tail-of")].map((e) => e.textContent)`)
	slices.Sort(ends)
	if ends = slices.Compact(ends); len(ends) != 2 {
		t.Errorf("nodes end in %q", ends)
	}
}

// TestNarrowNames: long names of files keep their picture beside them, and the steps of a path are whole lines.
func TestNarrowNames(t *testing.T) {
	c, _, v := openCrowded(t, "token-of-alice")
	v.look(390, "light")
	v.goTo(place{hash: "#/ci/" + c.deep + "/out", shows: "a-directory-with-a-long-name"})
	apart := ask[[]string](v, `[...document.querySelectorAll(".rows .cell.name")].filter((c) => {
		const icon = c.querySelector("svg").getBoundingClientRect(), name = c.querySelector("a").getBoundingClientRect();
		return icon.bottom <= name.top || icon.right > name.left + 1 || name.right > c.getBoundingClientRect().right + 1;
	}).map((c) => c.innerText)`)
	if len(apart) > 0 {
		t.Errorf("the picture is not beside %q", apart)
	}
	v.goTo(place{hash: "#/ci/" + c.deep + "/" + c.deepRef, shows: "last.txt"})
	const hidden = `(() => {
		const nav = document.querySelector("nav.path").getBoundingClientRect();
		return [...document.querySelectorAll("nav.path li")].filter((li) => {
			const box = li.getBoundingClientRect();
			return box.bottom > nav.bottom + 1 || box.right > nav.right + 1 || box.height > 40;
		}).map((li) => li.textContent);
	})()`
	if cut := ask[[]string](v, hidden); len(cut) > 0 {
		t.Errorf("of the path one cannot see %q", cut)
	}
	v.click("Show 3 more steps of the path")
	v.wait("all steps are there", `document.querySelectorAll("nav.path li").length === 8`)
	if cut := ask[[]string](v, hidden); len(cut) > 0 {
		t.Errorf("of the whole path one cannot see %q", cut)
	}
}

// TestHolds: who may pins a volume, takes that back, and releases it; the list shows all of that. Who may not is
// told which role it takes.
func TestHolds(t *testing.T) {
	c, p, v := openCrowded(t, "token-of-kim")
	v.look(1280, "light")
	hash := "#/ci/" + c.deep
	pinned := func(kind string) {
		t.Helper()
		v.goTo(place{hash: "#/ci?q=reconciliation", shows: "1 shown"})
		v.click("Refresh")
		if kind == "" {
			v.wait("the row says nothing", `!/pinned|released/.test(document.querySelector("[data-index='0']").innerText)`)
			return
		}
		v.wait("the row says "+kind, `document.querySelector("[data-index='0'] .cell.left").innerText.includes(`+quote(kind)+`)`)
	}
	v.goTo(place{hash: hash, shows: "Pin…"})
	v.click("Pin…")
	v.wait("a dialog asks", dialog)
	v.click("Pin")
	if ask[bool](v, "!"+dialog) {
		t.Fatal("a pin without a reason is taken")
	}
	ask[bool](v, `((e) => { e.focus(); e.value = "<b>post-mortem"; return true; })(document.getElementById("reason"))`)
	v.click("Pin")
	v.sees("by kim: <b>post-mortem")
	pinned("m, pinned")
	v.goTo(place{hash: hash, shows: "Unpin"})
	v.click("Unpin")
	v.sees("Release…")
	pinned("")
	v.goTo(place{hash: hash, shows: "Release…"})
	v.click("Release…")
	v.wait("a dialog asks", dialog)
	v.click("Release")
	v.sees("Undo release")
	pinned(", released")
	v.goTo(place{hash: hash, shows: "Undo release"})
	v.click("Undo release")
	v.sees("Release…")
	pinned("")
	v.wantQuiet(p.host)

	p = startPlugin(t, c.kubeconfig("token-of-alice", ""))
	v = newVisitor(t)
	p.enter(v)
	v.goTo(place{hash: hash, shows: "Pin…"})
	v.click("Pin…")
	ask[bool](v, `(document.getElementById("reason").value = "x", true)`)
	v.click("Pin")
	v.sees("The role katbox-keep includes it")
	if code, _, text := c.ask("token-of-alice", http.MethodGet, katboxAPI+"/namespaces/ci/retainedvolumes/"+c.deep); contains(text, "Pinned") {
		t.Errorf("it is pinned all the same: %d %s", code, text)
	}
}

// TestGroups: the volumes of a Job are one row, which the keyboard opens and closes; the address leads there.
func TestGroups(t *testing.T) {
	_, p, v := openCrowded(t, "token-of-alice")
	v.look(1280, "light")
	v.sees("24 volumes")
	v.click("Group by owner")
	v.wait("there are as many rows as owners", `document.querySelectorAll("[data-index]").length === 3`)
	v.wait("the address says so", `location.hash === "#/ci?group=owner"`)
	v.wait("how they ended is counted", `/2\s+Failed/.test(document.querySelector("[data-index='0'] .cell.outcome").textContent)`)
	tabTo(v, "the rows", `e.closest("[data-index]")`)
	v.press(kb.ArrowRight)
	v.wait("its volumes are there", `document.querySelectorAll("[data-index]").length === 11 &&
		document.activeElement.getAttribute("aria-expanded") === "true"`)
	v.press(kb.ArrowDown)
	v.wait("the next row is a volume", `document.activeElement.matches("a[href]")`)
	v.press(kb.ArrowUp, kb.ArrowLeft)
	v.wait("they are gone", `document.querySelectorAll("[data-index]").length === 3`)
	v.press(kb.Enter)
	v.wait("Enter opens it too", `document.querySelectorAll("[data-index]").length === 11`)
	v.goTo(place{hash: "#/ci?group=owner&q=reconciliation", shows: "1 shown"})
	v.wait("what is searched for is shown", `document.querySelectorAll("[data-index]").length === 2`)
	v.wantQuiet(p.host)
}

// TestChooser: who may list namespaces chooses among them; who has rights in one alone is offered that, and types others.
func TestChooser(t *testing.T) {
	c, _, v := openCrowded(t, "token-of-root")
	v.sees("24 volumes")
	v.choose()
	v.wait("all are offered", `["All namespaces", "ci", "empty", "other"].every((n) =>
		[...document.querySelectorAll("#choose a")].some((a) => a.textContent === n))`)
	v.press("e", "m", kb.Enter)
	v.sees("There are no retained volumes in the namespace empty")
	v.choose()
	v.press(kb.ArrowDown, kb.Enter)
	v.sees("Retained volumes of all namespaces")
	v.sees("24 volumes")

	p := startPlugin(t, c.kubeconfig("token-of-alice", ""))
	v = newVisitor(t)
	p.enter(v)
	v.sees("24 volumes")
	v.choose()
	v.sees("type the name of another one")
	v.press("o", "t", "h", "e", "r")
	v.sees("Open “other”")
	v.press(kb.Enter)
	v.sees("You may not list retained volumes in the namespace other")
	v.choose()
	v.press("c", "i", kb.Enter)
	v.sees("24 volumes")
}

// TestCopiedCommands: the command for what is shown is copied, and the plugin reads it.
func TestCopiedCommands(t *testing.T) {
	c, _, v := openCrowded(t, "token-of-alice")
	v.look(1280, "light")
	ask[bool](v, `(Object.defineProperty(navigator, "clipboard", {value: {writeText: async (text) => { window.copied = text; }}}), true)`)
	for _, at := range []struct{ hash, shows, command string }{
		{"#/ci", "24 volumes", "kubectl katbox list -n ci"}, {"#/ci?view=gone", "2 volumes", "kubectl katbox list --gone -n ci"},
		{"#/ci/" + c.deep, "1 entry", "kubectl katbox ls -n ci " + c.deep + ":"},
		{"#/ci/" + c.deep + "/" + c.deepRef + "/last.txt", "The end.", "kubectl katbox cat -n ci " + c.deep + ":" + c.deepRef + "/last.txt"},
	} {
		v.goTo(place{hash: at.hash, shows: at.shows})
		v.click("Copy command")
		v.wait("it is copied", "window.copied === "+quote(at.command))
	}
}

// TestProgramEnds: when the program has ended, the page says so without being asked, and nothing that it would do can
// be pressed; what is loaded stays.
func TestProgramEnds(t *testing.T) {
	c, p, v := openCrowded(t, "token-of-alice")
	v.sees("24 volumes")
	v.goTo(place{hash: "#/ci/" + c.deep, shows: "Download all (1016 MiB)"})
	v.wait("they can be pressed", `["archive", "remove", "pin", "release"].every((id) => !document.getElementById(id).disabled)`)
	p.stop()
	v.sees("The program behind this page has ended")
	v.wait("they cannot be pressed", `["archive", "remove", "pin", "release"].every((id) => document.getElementById(id).disabled)`)
	v.goTo(place{hash: "#/ci", shows: "24 volumes"})
	v.wait("nor can this", `document.getElementById("refresh").disabled`)
}

// TestGoneIsLinked: the address of a volume that is gone leads to when and why it went.
func TestGoneIsLinked(t *testing.T) {
	c, _, v := openShowcase(t)
	v.sees(c.failedPod)
	code, _, _ := c.ask("token-of-alice", http.MethodDelete, katboxAPI+"/namespaces/ci/retainedvolumes/"+c.failed+"?reason=leaked")
	if code != http.StatusOK {
		t.Fatalf("the deletion answers %d", code)
	}
	v.goTo(place{hash: "#/ci/" + c.failed, shows: "This volume is gone"})
	v.click("When and why it went")
	v.sees("purged by alice: leaked")
	v.wait("it is searched for", `location.hash === "#/ci?view=gone&q=`+c.failedPod+`"`)
}
