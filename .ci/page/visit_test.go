package page

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"testing"

	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// TestVisit: a whole visit asks no other host for anything, and nothing in it breaks a rule of the page's
// own Content-Security-Policy or fails.
func TestVisit(t *testing.T) {
	c, p, v := openShowcase(t)
	for _, at := range c.places() {
		switch at.name {
		case "no-such-volume", "no-such-file", "forbidden":
			continue // the browser itself writes into the console that a request failed
		}
		v.goTo(at)
		v.settle()
	}
	volume := "#/ci/" + c.failed
	v.goTo(place{hash: volume + "/out/log.txt", shows: "reconcile"})
	ask[bool](v, `(window.said = [], new MutationObserver((changes) =>
			window.said.push(...changes.flatMap((c) => [...c.addedNodes].map((n) => n.textContent))))
		.observe(document.getElementById("live"), { childList: true }), true)`)
	v.click("Download")
	v.wait("a screen reader says how much is downloaded",
		`window.said.some((text) => /^The download of [0-9.]+ ([KM]i)?B begins$/.test(text))`)
	name, content := v.downloaded(0)
	if want := c.read(t, "out/log.txt"); name != "log.txt" || string(content) != want {
		t.Errorf("downloaded %s with %d bytes, want %d", name, len(content), len(want))
	}
	v.goTo(place{hash: volume + "/out", shows: "report.json"})
	v.click("Download directory")
	v.wait("nothing is said of a size that is not known", `window.said.includes("The download begins")`)
	name, content = v.downloaded(1)
	unpacked, err := gzip.NewReader(bytes.NewReader(content))
	must(t, err)
	tar, err := io.ReadAll(unpacked)
	if err != nil || !bytes.Contains(tar, []byte("giving up")) || !contains(name, ".tar.gz") {
		t.Errorf("downloaded %s with %d bytes, %v", name, len(tar), err)
	}
	v.goTo(place{hash: volume, shows: "README"})
	v.click("Delete…")
	v.wait("a dialog asks", dialog)
	if code := c.has(c.failed); code != http.StatusOK {
		t.Errorf("the volume is gone before the dialog was answered: %d", code)
	}
	v.confirm()
	v.wait("the list is shown, without the volume", `location.hash.split("?")[0] === "#/ci" && document.querySelector("[role=grid]") &&
		!document.body.innerText.includes(`+quote(c.failedPod)+`)`)
	if code := c.has(c.failed); code != http.StatusNotFound {
		t.Errorf("the volume is still there: %d", code)
	}
	v.wantQuiet(p.host, p.raw)
}

// read returns a file of the pod that failed, as the API gives it away.
func (c *showcase) read(t testing.TB, path string) string {
	t.Helper()
	code, _, text := c.ask("token-of-alice", http.MethodGet, katboxAPI+"/namespaces/ci/retainedvolumes/"+c.failed+"/log?path="+path)
	if code != http.StatusOK {
		t.Fatalf("%s: %d %s", path, code, text)
	}
	return text
}

// TestAddresses: the address of a file and of its lines leads there, also in a fresh window that has not
// seen the list, and back leads back.
func TestAddresses(t *testing.T) {
	c, p, v := openShowcase(t)
	v.sees(c.failedPod)
	for _, at := range c.places() {
		tab := newTab(v)
		must(t, tab.visit(p.origin+"/"+at.hash))
		tab.sees(at.shows)
		if at.then != nil {
			at.then(tab)
		}
		if at.name == "text" {
			tab.wait("the lines are marked, and in sight", `(() => {
				const box = document.querySelector("[aria-current], .marked, [aria-selected=true], .picked, .line.on")?.getBoundingClientRect();
				return box && box.top >= 0 && box.bottom <= innerHeight;
			})()`)
		}
		tab.close()
	}
	for _, at := range c.places()[:5] {
		v.goTo(at)
		v.settle()
	}
	for i := 4; i > 0; i-- {
		before := c.places()[i-1]
		ask[bool](v, "(history.back(), true)")
		v.wait("back leads to "+before.name, "location.hash === "+quote(before.hash))
		v.sees(before.shows)
	}
}

// TestRights: who may see the list and not the files is told so, and who may see nothing is told that.
func TestRights(t *testing.T) {
	c := newShowcase(t, "n4")
	p := startPlugin(t, c.kubeconfig("token-of-vera", ""))
	v := newVisitor(t)
	p.enter(v)
	v.sees(c.failedPod)
	v.goTo(place{hash: "#/ci/" + c.failed, shows: "retainedvolumes/files"})
	v.goTo(place{hash: "#/ci/" + c.failed + "/out/log.txt", shows: "retainedvolumes/"})
	p = startPlugin(t, c.kubeconfig("token-of-bob", ""))
	v = newVisitor(t)
	p.enter(v)
	v.sees("retainedvolumes")
	if contains(v.text(), "nightly") {
		t.Errorf("a stranger sees:\n%s", v.text())
	}
	// A client certificate is as good as a token.
	p = startPlugin(t, c.kubeconfig("", "alice"))
	v = newVisitor(t)
	p.enter(v)
	v.sees(c.failedPod)
}

// TestMissingNode: what did not answer is said.
func TestMissingNode(t *testing.T) {
	_, _, v := openShowcase(t)
	v.sees("n4")
}

// TestGatewayAway: without the gateway the page says so, and works again once it is back.
func TestGatewayAway(t *testing.T) {
	c, _, v := openShowcase(t)
	v.sees(c.failedPod)
	c.mu.Lock()
	c.down = true
	c.mu.Unlock()
	v.goTo(place{hash: "#/ci/" + c.failed + "/out", shows: "gateway"})
	c.mu.Lock()
	c.down = false
	c.mu.Unlock()
	v.click("Try again")
	v.sees("report.json")
}

// TestSecondWindow: the first URL serves once, for one browser. Several tabs of that browser share the page.
func TestSecondWindow(t *testing.T) {
	c, p, v := openShowcase(t)
	v.sees(c.failedPod)
	tab := newTab(v)
	must(t, tab.visit(p.origin+"/#/ci"))
	tab.sees(c.failedPod)
	stranger := newVisitor(t)
	must(t, stranger.visit(p.first))
	stranger.sees("may not use it")
	must(t, stranger.visit(p.origin+"/"))
	stranger.sees("may not use it")
	v.do(chromedp.Reload())
	v.sees(c.failedPod)
}

// TestHalfAPage: when a script does not load, as when the network changes meanwhile, the page says so.
func TestHalfAPage(t *testing.T) {
	c, p, v := openShowcase(t)
	v.sees(c.failedPod)
	tab := newTab(v)
	_, err := chromedp.Call(tab.ctx, fetch.Enable, fetch.EnableParams{Patterns: []*fetch.RequestPattern{{URLPattern: "*/volumes.js"}}})
	must(t, err)
	must(t, chromedp.Listen(tab.ctx, func(event any) {
		if paused, ok := event.(*fetch.EventRequestPaused); ok {
			go func() {
				_, _ = chromedp.Call(tab.ctx, fetch.FailRequest, fetch.FailRequestParams{
					RequestID: paused.RequestID, ErrorReason: network.ErrorReasonConnectionAborted,
				})
			}()
		}
	}))
	must(t, tab.visit(p.origin+"/"))
	tab.sees("The page did not load.")
}
